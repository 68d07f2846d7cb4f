// UTF-8: well-formedness, and text made of bytes that need not be well-formed.
//
// Journey    sampled ids -> tokenizer -> bytes -> [utf8] -> text
// Invariant  an ill-formed part becomes one U+FFFD for each maximal part, as the Unicode standard
//            recommends and Rust's from_utf8_lossy does; pieces give the same text as the whole
// Threads    pure functions
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ember {

// What stands at the front of a byte string.
struct Utf8Step {
  enum class Kind { kCharacter, kIllFormed, kCutOff };  // kCutOff: good so far, but the bytes end
  Kind kind;
  size_t length;  // bytes of the character, or of the maximal ill-formed or cut-off part
};

// `bytes` must not be empty.
Utf8Step utf8_step(std::string_view bytes);

// The position of the first byte that begins no well-formed character; npos if there is none.
size_t find_ill_formed(std::string_view bytes);

// Moves what is decided from the front of `pending` to `out`; a cut-off character stays.
void take_complete_utf8(std::string& pending, std::string& out);

// `bytes` as text; a cut-off character at the end is ill-formed too.
std::string lossy_utf8(std::string_view bytes);

// The first character, or 0 when there is none. `text` is well-formed.
char32_t first_code_point(std::string_view text);

// Where the last character of a well-formed, non-empty text begins.
size_t last_character(std::string_view text);

// Appends a code point below U+0800 (one or two bytes).
void append_short_utf8(std::string& out, char32_t code_point);

// Appends a code point that is no surrogate.
void append_utf8(std::string& out, char32_t code_point);

}  // namespace ember
