// Pre-tokenizer: cuts text into the pieces inside which BPE may merge.
//
// Journey    text between added tokens -> [pre_tokenizer] -> pieces -> bpe
// Invariant  each step sees one piece at a time, so look-around stops at a piece's ends; no piece
//            is empty
// Threads    one object a thread (its expressions keep scratch)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/regex.h"
#include "engine/text/tokenizer_file.h"

namespace ember {

// A text and the parts of it that are still of interest, in order.
struct Pieces {
  struct Range {
    size_t begin;
    size_t end;
    size_t from_first = 0;  // of these, from the front: see NormalizedText
  };
  std::string text;
  std::vector<Range> ranges;

  // The whole of `whole` as one piece; none when it is empty.
  explicit Pieces(std::string_view whole, size_t from_first = 0) : text(whole) {
    if (!text.empty()) ranges.push_back({0, text.size(), from_first});
  }
  std::string_view view(const Range& range) const {
    return std::string_view(text).substr(range.begin, range.end - range.begin);
  }
};

class PreTokenizer {
 public:
  // Errors: kUnsupported for an expression that Oniguruma refuses.
  static Result<PreTokenizer> build(const std::vector<PreTokenizerStep>& steps);
  // Errors: kUnsupported when an expression gives up.
  Status run(Pieces& pieces);

 private:
  struct Step {
    PreTokenizerStep what;
    std::vector<Regex> regex;  // one, or none when nothing is split
  };
  Status split(Step& step, Pieces& pieces);

  std::vector<Step> steps_;
  std::vector<Regex::Match> matches_;
};

}  // namespace ember
