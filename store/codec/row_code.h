// Row code: the exponents that one channel has in up to 64 successive tokens, as bits.
//
// Journey    codec -> channel_planes -> [row_code] -> bits, and back
// Invariant  every level of instructions writes the same bits and reads the same values; decode
//            touches nothing but its rows and the reader's slack, whatever the bits are
// Threads    any; no state
// Not here   where rows, heads and bits lie in a payload (store/codec/channel_planes.h)
//
// A row is coded as its head (largest exponent, class) and planes of bits. Its symbols are the
// distances below the largest exponent. The class (row_classes.h) ranks them: the first 2^k - 1 are
// told by k whole planes, one bit a token; all ones there means "none of them", and from there on
// comes one plane for each further rank, one bit for each token that is still unknown: 1 goes on, 0
// is this rank. So a plane is one AND or PEXT of masks to write and one PDEP to read, 64 tokens at
// a time, and its length is that of a Huffman code of the same shape. Tokens that outlast all ranks
// have their exponents as they are, 8 bits each, at the row's end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/codec/row_bits.h"

namespace ember {

inline constexpr size_t kRowTokens = 64;
// No row is longer: class kRawRow has 8 bits a token.
inline constexpr size_t kMostRowBytes = kRowTokens;
// Bits that decode may take for one row of damaged bytes: planes of 15 ranks, then 64 exponents.
inline constexpr size_t kMostDamagedRowBits = (15 + 3 + 8) * kRowTokens;

// bf16 is s eeeeeeee mmmmmmm: the exponent, and sign and mantissa as one byte.
constexpr uint8_t bf16_exponent(uint16_t bits) { return static_cast<uint8_t>(bits >> 7); }
constexpr uint8_t bf16_rest(uint16_t bits) {
  return static_cast<uint8_t>((bits >> 8 & 0x80) | (bits & 0x7f));
}
constexpr uint16_t bf16_bits(uint8_t exponent, uint8_t rest) {
  return static_cast<uint16_t>((rest & 0x80) << 8 | exponent << 7 | (rest & 0x7f));
}

// One entry a row.
struct RowHeads {
  uint8_t* largest;
  uint8_t* classes;
};

struct RowCode {
  const char* name;
  // Run of `tokens` <= 64 successive tokens of one layer, [tokens][channels] bf16 each way:
  // exponents go to (come from) [channels][64], the other 8 bits to (from) [tokens][channels].
  // split leaves exponents beyond `tokens` as they were.
  void (*split)(const std::byte* raw, size_t tokens, size_t channels, uint8_t* exponents,
                uint8_t* rest);
  void (*merge)(const uint8_t* exponents, const uint8_t* rest, size_t tokens, size_t channels,
                std::byte* raw);
  // `rows` rows of `tokens` values each, 64 bytes apart; bytes behind a row's tokens must be 0.
  // Appends to `bits` and writes a head a row.
  void (*encode)(const uint8_t* values, size_t rows, size_t tokens, const RowHeads& heads,
                 BitWriter& bits);
  // The reverse; writes all 64 bytes of each row. Stops before a row that would begin behind the
  // reader's limit and returns the number of rows decoded.
  size_t (*decode)(const RowHeads& heads, size_t rows, size_t tokens, BitReader& bits,
                   uint8_t* values);
};

const RowCode& scalar_row_code();
// Null where the program or the CPU has no AVX2 with BMI2.
const RowCode* avx2_row_code();
// The fastest that this CPU has.
const RowCode& row_code();

}  // namespace ember
