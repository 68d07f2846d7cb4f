// Byte level: the 256 characters that stand for bytes in a byte-level vocabulary.
//
// Journey    text -> pre_tokenizer -> [byte_level] -> bpe; ids -> tokenizer -> [byte_level] -> text
// Invariant  bytes 33..126, 161..172 and 174..255 stand for themselves; the other 68, in ascending
//            order, are U+0100..U+0143
// Threads    pure functions
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ember {

// Appends the characters that stand for `bytes`.
void append_byte_characters(std::string& out, std::string_view bytes);

// The bytes of a token: each character's byte if every one stands for a byte, else the token's own
// UTF-8 (as added tokens are decoded).
std::string bytes_of_token(std::string_view token);

// The token that stands for one byte where characters fall back to bytes: "<0x0A>".
std::string byte_token(uint8_t byte);
// The byte that such a token stands for; its digits may be small letters, or one of them a '+', as
// the original reads it.
std::optional<uint8_t> byte_of_token(std::string_view token);

}  // namespace ember
