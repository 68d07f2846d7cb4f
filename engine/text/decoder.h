// Decoder: how the tokens of a text become the text again, one token after the other.
//
// Journey    ids -> tokenizer -> tokens -> [decoder] -> text
// Invariant  what pushes and the end give together is what the original gives for all tokens at
//            once; never half a character
// Threads    the plan is constant, a run belongs to one text
// Not here   ids and special tokens (tokenizer.cc)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/tokenizer_file.h"

namespace ember {

// A piece of text on its way; it begins a token or goes on with one.
struct DecoderChunk {
  std::string text;
  bool begins;
};

// One step of one run.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  virtual void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) = 0;
  virtual void finish(std::vector<DecoderChunk>& /*out*/) {}
};

class DecoderRun {
 public:
  explicit DecoderRun(const std::vector<DecoderStep>& steps);
  // Appends to `out` what became certain.
  void push(std::string_view token, std::string& out);
  void finish(std::string& out);

 private:
  void pass_on(std::vector<DecoderChunk> chunks, size_t from, std::string& out);

  std::vector<std::unique_ptr<DecoderStage>> stages_;
};

// The bytes that `token` stands for by itself, as if in the midst of a text.
std::string decoded_bytes(const std::vector<DecoderStep>& steps, std::string_view token);

}  // namespace ember
