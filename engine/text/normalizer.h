// Normalizer: rewrites text before anything is cut: forms, case, accents, ends, replacements.
//
// Journey    text between added tokens -> [normalizer] -> added_tokens (those that are normalized)
//            -> pre_tokenizer
// Invariant  text without steps is untouched; well-formed stays well-formed
// Threads    one object a thread (its expressions keep scratch)
// Not here   Unicode's tables (unicode_forms.h)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/regex.h"
#include "engine/text/tokenizer_file.h"

namespace ember {

// A text, and how much of its front came of the first character of what was given to encode: a
// Metaspace may ask whether a piece begins there.
struct NormalizedText {
  std::string text;
  size_t from_first = 0;  // bytes
};

class Normalizer {
 public:
  // Errors: kUnsupported for an expression that Oniguruma refuses.
  static Result<Normalizer> build(const std::vector<NormalizerStep>& steps);
  bool empty() const { return steps_.empty(); }
  // Errors: kUnsupported when an expression gives up.
  Status run(NormalizedText& text);

 private:
  struct Step {
    NormalizerStep what;
    std::vector<Regex> regex;  // one in a kReplace, else none
  };
  Status replace(Step& step, NormalizedText& text);

  std::vector<Step> steps_;
  std::vector<Regex::Match> matches_;
};

}  // namespace ember
