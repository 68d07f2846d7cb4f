// Decoder: the stages, each of which holds back only what the next token may still change.
#include "engine/text/decoder.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/check.h"
#include "engine/text/byte_level.h"
#include "engine/text/regex.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Puts a token's chunks together, for a stage that must see whole tokens.
class Gather final : public DecoderStage {
 public:
  void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) override {
    if (chunk.begins) finish(out);
    token_ = token_.value_or("") + chunk.text;
  }
  void finish(std::vector<DecoderChunk>& out) override {
    if (token_) out.push_back({std::move(*token_), true});
    token_.reset();
  }

 private:
  std::optional<std::string> token_;
};

class Replace final : public DecoderStage {
 public:
  explicit Replace(const DecoderStep& step) : content_(step.content), regex_(compiled(step)) {}

  void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) override {
    out.push_back({replaced(chunk.text), chunk.begins});
  }
  // A token on which the expression gives up stays as it is.
  std::string replaced(const std::string& token) {
    if (!regex_.find_all(token, matches_).ok() || matches_.empty()) return token;
    std::string text;
    size_t done = 0;
    for (const Regex::Match& match : matches_) {
      text.append(token, done, match.begin - done).append(content_);
      done = match.end;
    }
    return text.append(token, done);
  }

 private:
  static Regex compiled(const DecoderStep& step) {
    auto regex = Regex::compile(step.pattern);
    EMBER_CHECK(regex.ok(), "a decoder's expression is compiled when its file is read");
    return std::move(*regex);
  }

  std::string content_;
  Regex regex_;
  std::vector<Regex::Match> matches_;
};

// A run of byte tokens is one text, or one U+FFFD a byte: which, only the run's end tells.
class ByteFallback final : public DecoderStage {
 public:
  void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) override {
    if (const std::optional<uint8_t> byte = byte_of_token(chunk.text)) {
      bytes_ += static_cast<char>(*byte);
      return;
    }
    finish(out);
    out.push_back(std::move(chunk));
  }
  void finish(std::vector<DecoderChunk>& out) override {
    if (bytes_.empty()) return;
    if (find_ill_formed(bytes_) == std::string_view::npos) {
      out.push_back({bytes_, true});
    } else {
      out.insert(out.end(), bytes_.size(), {std::string(kReplacementCharacter), true});
    }
    bytes_.clear();
  }

 private:
  std::string bytes_;
};

class Fuse final : public DecoderStage {
 public:
  void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) override {
    out.push_back({std::move(chunk.text), std::exchange(first_, false)});
  }

 private:
  bool first_ = true;
};

// Takes a character from both ends of each token.
class Strip final : public DecoderStage {
 public:
  explicit Strip(const DecoderStep& step)
      : content_(step.content), start_(step.start), stop_(step.stop) {}

  void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) override {
    if (chunk.begins) {
      held_ = 0;
      to_strip_ = start_;
    }
    std::string_view text = chunk.text;
    while (to_strip_ > 0 && text.starts_with(content_)) {
      text.remove_prefix(content_.size());
      --to_strip_;
    }
    if (text.empty() && !chunk.begins) return;
    if (!text.empty()) to_strip_ = 0;
    // What is held is told again before what follows; of the end, as much is held anew.
    std::string whole;
    for (; held_ > 0; --held_) whole += content_;
    whole += text;
    while (held_ < stop_ && whole.ends_with(content_)) {
      whole.resize(whole.size() - content_.size());
      ++held_;
    }
    out.push_back({std::move(whole), chunk.begins});
  }

 private:
  std::string content_;
  size_t start_;
  size_t stop_;
  size_t to_strip_ = 0;
  size_t held_ = 0;
};

class Metaspace final : public DecoderStage {
 public:
  explicit Metaspace(const DecoderStep& step)
      : character_(step.content), drops_first_(step.drops_first) {}

  void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) override {
    if (chunk.begins) ++tokens_;
    const bool drops = tokens_ == 1 && drops_first_;
    out.push_back({with_spaces(chunk.text, drops), chunk.begins});
  }
  std::string with_spaces(std::string_view token, bool drops) const {
    std::string text;
    for (size_t at = 0; at < token.size();) {
      const size_t next = std::min(token.find(character_, at), token.size());
      text += token.substr(at, next - at);
      if (next < token.size() && !drops) text += ' ';
      at = next + character_.size();
    }
    return text;
  }

 private:
  std::string character_;
  bool drops_first_;
  size_t tokens_ = 0;
};

// All tokens' bytes are one text, with U+FFFD for what is ill-formed.
class ByteLevel final : public DecoderStage {
 public:
  void push(DecoderChunk chunk, std::vector<DecoderChunk>& out) override {
    pending_ += bytes_of_token(chunk.text);
    std::string text;
    take_complete_utf8(pending_, text);
    if (!text.empty()) out.push_back({std::move(text), std::exchange(first_, false)});
  }
  void finish(std::vector<DecoderChunk>& out) override {
    if (pending_.empty()) return;
    out.push_back({lossy_utf8(pending_), std::exchange(first_, false)});
    pending_.clear();
  }

 private:
  std::string pending_;
  bool first_ = true;
};

std::unique_ptr<DecoderStage> make_stage(const DecoderStep& step) {
  switch (step.kind) {
    case DecoderStep::Kind::kByteLevel:
      return std::make_unique<ByteLevel>();
    case DecoderStep::Kind::kReplace:
      return std::make_unique<Replace>(step);
    case DecoderStep::Kind::kByteFallback:
      return std::make_unique<ByteFallback>();
    case DecoderStep::Kind::kFuse:
      return std::make_unique<Fuse>();
    case DecoderStep::Kind::kStrip:
      return std::make_unique<Strip>(step);
    case DecoderStep::Kind::kMetaspace:
      return std::make_unique<Metaspace>(step);
  }
  return nullptr;
}

// Whether a token may reach the step behind this one in parts.
bool joins_tokens(DecoderStep::Kind kind) {
  return kind == DecoderStep::Kind::kFuse || kind == DecoderStep::Kind::kByteLevel;
}

bool needs_whole_tokens(DecoderStep::Kind kind) {
  return kind == DecoderStep::Kind::kReplace || kind == DecoderStep::Kind::kByteFallback ||
         kind == DecoderStep::Kind::kByteLevel;
}

}  // namespace

DecoderRun::DecoderRun(const std::vector<DecoderStep>& steps) {
  bool in_parts = false;
  for (const DecoderStep& step : steps) {
    if (in_parts && needs_whole_tokens(step.kind)) {
      stages_.push_back(std::make_unique<Gather>());
      in_parts = false;
    }
    stages_.push_back(make_stage(step));
    in_parts = in_parts || joins_tokens(step.kind);
  }
}

void DecoderRun::pass_on(std::vector<DecoderChunk> chunks, size_t from, std::string& out) {
  for (size_t i = from; i < stages_.size() && !chunks.empty(); ++i) {
    std::vector<DecoderChunk> next;
    for (DecoderChunk& chunk : chunks) stages_[i]->push(std::move(chunk), next);
    chunks = std::move(next);
  }
  for (const DecoderChunk& chunk : chunks) out += chunk.text;
}

void DecoderRun::push(std::string_view token, std::string& out) {
  std::vector<DecoderChunk> chunks;
  chunks.push_back({std::string(token), true});
  pass_on(std::move(chunks), 0, out);
}

void DecoderRun::finish(std::string& out) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    std::vector<DecoderChunk> last;
    stages_[i]->finish(last);
    pass_on(std::move(last), i + 1, out);
  }
}

std::string decoded_bytes(const std::vector<DecoderStep>& steps, std::string_view token) {
  std::string bytes(token);
  for (const DecoderStep& step : steps) {
    if (step.kind == DecoderStep::Kind::kReplace) {
      bytes = Replace(step).replaced(bytes);
    } else if (step.kind == DecoderStep::Kind::kMetaspace) {
      bytes = Metaspace(step).with_spaces(bytes, false);
    } else if (step.kind == DecoderStep::Kind::kByteLevel) {
      bytes = bytes_of_token(bytes);
    } else if (const auto byte = byte_of_token(bytes);
               byte && step.kind == DecoderStep::Kind::kByteFallback) {
      return std::string(1, static_cast<char>(*byte));
    }
  }
  return bytes;
}

}  // namespace ember
