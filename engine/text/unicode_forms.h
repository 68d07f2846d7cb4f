// Unicode forms: normalization forms, lower case and marks, as the tokenizers package has them.
//
// Journey    none; what normalizer.h asks of Unicode's tables
// Invariant  forms and marks are those of Unicode 9, which the package carries for them: a younger
//            character is left alone; lower case is that of Unicode 17
// Threads    pure functions
// Source     the package 0.23.3, compared over all code points; ICU carries the tables
#pragma once

#include <string>
#include <string_view>

namespace ember {

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// `text` is well-formed in each.
std::string in_form(UnicodeForm form, std::string_view text);
// Each character's lower case by itself: no language, no final sigma.
std::string in_lower_case(std::string_view text);
std::string without_marks(std::string_view text);

// The Unicode property White_Space.
bool is_white_space(char32_t code_point);

}  // namespace ember
