// Regex: one Oniguruma regular expression over UTF-8, in the syntax that tokenizers are written in.
//
// Journey    text -> pre_tokenizer -> [regex] -> pieces
// Invariant  matches are those of the `onig` crate's find_iter: leftmost, ordered alternatives, an
//            empty match right after a match is skipped by one character
// Threads    one object a thread: a search reuses the object's region
// Not here   what becomes of the matches (pre_tokenizer.h)
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/tokenizer_file.h"

namespace ember {

class Regex {
 public:
  struct Match {
    size_t begin;
    size_t end;
  };

  // Errors: kUnsupported with Oniguruma's own words.
  static Result<Regex> compile(std::string_view pattern);
  // A text is looked for without Oniguruma, unless it is empty (it matches between characters).
  static Result<Regex> compile(const PatternText& pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Replaces `out` by all matches in `text`, which must be well-formed and below 2 GiB.
  // Errors: kUnsupported when Oniguruma gives up (a limit on backtracking or memory).
  Status find_all(std::string_view text, std::vector<Match>& out);

 private:
  struct Compiled;
  explicit Regex(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace ember
