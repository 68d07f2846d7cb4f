// Row code, plain: token by token, the reference of the vector level and the level of other CPUs.
#include <algorithm>
#include <array>
#include <cstring>

#include "store/codec/row_classes.h"
#include "store/codec/row_code.h"

namespace ember {
namespace {

void split(const std::byte* raw, size_t tokens, size_t channels, uint8_t* exponents,
           uint8_t* rest) {
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = 0; c < channels; ++c) {
      uint16_t bits;
      std::memcpy(&bits, raw + 2 * (t * channels + c), sizeof bits);
      exponents[c * kRowTokens + t] = bf16_exponent(bits);
      rest[t * channels + c] = bf16_rest(bits);
    }
  }
}

void merge(const uint8_t* exponents, const uint8_t* rest, size_t tokens, size_t channels,
           std::byte* raw) {
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = 0; c < channels; ++c) {
      const uint16_t bits = bf16_bits(exponents[c * kRowTokens + t], rest[t * channels + c]);
      std::memcpy(raw + 2 * (t * channels + c), &bits, sizeof bits);
    }
  }
}

// Bits of the row in each class, its cost included, and from them the class.
uint8_t choose_class(const uint8_t* values, size_t tokens, uint8_t largest) {
  std::array<uint8_t, kRanks + 1> counts = {};
  for (size_t t = 0; t < tokens; ++t) {
    ++counts[std::min<unsigned>(static_cast<unsigned>(largest - values[t]), kRanks)];
  }
  if (counts[0] == tokens) return kConstantRow;
  std::array<unsigned, kRowClasses> bits;
  for (size_t k = 0; k < kRowClasses; ++k) {
    bits[k] = kClassCosts[k];
    for (size_t d = 0; d <= kRanks; ++d) bits[k] += unsigned{counts[d]} * kClassLengths[k][d];
  }
  return static_cast<uint8_t>(std::min_element(bits.begin(), bits.end()) - bits.begin());
}

void encode_planes(const std::array<uint8_t, kRowTokens>& ranks, size_t tokens,
                   const RowClass& row_class, BitWriter& bits) {
  const unsigned told = class_told(row_class);
  for (unsigned plane = 0; plane < row_class.planes; ++plane) {
    uint64_t word = 0;
    for (size_t t = 0; t < tokens; ++t) {
      word |= uint64_t{std::min<unsigned>(ranks[t], told) >> plane & 1} << t;
    }
    bits.put(word, static_cast<unsigned>(tokens));
  }
  std::array<uint8_t, kRowTokens> unknown;  // ranks, in the order of tokens
  unsigned left = 0;
  for (size_t t = 0; t < tokens; ++t) {
    unknown[left] = ranks[t];
    left += ranks[t] >= told ? 1u : 0u;
  }
  for (unsigned rank = told; rank < kRanks && left > 0; ++rank) {
    uint64_t word = 0;
    unsigned still = 0;
    for (unsigned i = 0; i < left; ++i) {
      const unsigned on = unknown[i] > rank ? 1u : 0u;
      word |= uint64_t{on} << i;
      unknown[still] = unknown[i];
      still += on;
    }
    bits.put(word, left);
    left = still;
  }
}

void encode_row(const uint8_t* values, size_t tokens, uint8_t largest, uint8_t class_id,
                BitWriter& bits) {
  if (class_id == kConstantRow) return;
  std::array<uint8_t, kRowTokens> ranks;
  ranks.fill(kRanks);
  if (class_id != kRawRow) {
    const RowClass& row_class = kClasses[class_id];
    std::array<uint8_t, kRanks + 1> rank_of;
    for (unsigned d = 0; d <= kRanks; ++d) {
      rank_of[d] = static_cast<uint8_t>(d == kRanks ? kRanks : class_rank(row_class, d));
    }
    for (size_t t = 0; t < tokens; ++t) {
      ranks[t] = rank_of[std::min<unsigned>(static_cast<unsigned>(largest - values[t]), kRanks)];
    }
    encode_planes(ranks, tokens, row_class, bits);
  }
  for (size_t t = 0; t < tokens; ++t) {
    if (ranks[t] == kRanks) bits.put(values[t], 8);
  }
}

void encode(const uint8_t* values, size_t rows, size_t tokens, const RowHeads& heads,
            BitWriter& bits) {
  for (size_t r = 0; r < rows; ++r, values += kRowTokens) {
    heads.largest[r] = *std::max_element(values, values + tokens);
    heads.classes[r] = choose_class(values, tokens, heads.largest[r]);
    encode_row(values, tokens, heads.largest[r], heads.classes[r], bits);
  }
}

void decode_planes(const RowClass& row_class, size_t tokens, BitReader& bits, uint8_t* ranks) {
  const unsigned told = class_told(row_class);
  for (unsigned plane = 0; plane < row_class.planes; ++plane) {
    const uint64_t word = bits.take(static_cast<unsigned>(tokens));
    for (size_t t = 0; t < tokens; ++t) {
      ranks[t] = static_cast<uint8_t>(ranks[t] | (word >> t & 1) << plane);
    }
  }
  std::array<uint8_t, kRowTokens> unknown;  // tokens, in their order
  unsigned left = 0;
  for (size_t t = 0; t < tokens; ++t) {
    unknown[left] = static_cast<uint8_t>(t);
    left += ranks[t] == told ? 1u : 0u;
  }
  for (unsigned rank = told; rank < kRanks && left > 0; ++rank) {
    const uint64_t word = bits.take(left);
    unsigned still = 0;
    for (unsigned i = 0; i < left; ++i) {
      const auto on = static_cast<uint8_t>(word >> i & 1);
      ranks[unknown[i]] = static_cast<uint8_t>(ranks[unknown[i]] + on);
      unknown[still] = unknown[i];
      still += on;
    }
    left = still;
  }
}

void decode_row(uint8_t largest, uint8_t class_id, size_t tokens, BitReader& bits,
                uint8_t* values) {
  std::memset(values, largest, kRowTokens);
  if (class_id == kConstantRow) return;
  const RowClass& row_class = kClasses[class_id];
  std::array<uint8_t, kRowTokens> ranks = {};
  if (class_id == kRawRow) {
    ranks.fill(kRanks);
  } else {
    decode_planes(row_class, tokens, bits, ranks.data());
  }
  for (size_t t = 0; t < tokens; ++t) {
    values[t] = ranks[t] == kRanks ? static_cast<uint8_t>(bits.take(8))
                                   : static_cast<uint8_t>(largest - row_class.distance[ranks[t]]);
  }
}

size_t decode(const RowHeads& heads, size_t rows, size_t tokens, BitReader& bits,
              uint8_t* values) {
  for (size_t r = 0; r < rows; ++r, values += kRowTokens) {
    if (!bits.within()) return r;
    decode_row(heads.largest[r], heads.classes[r] % kRowClasses, tokens, bits, values);
  }
  return rows;
}

}  // namespace

const RowCode& scalar_row_code() {
  static constexpr RowCode code = {"scalar", split, merge, encode, decode};
  return code;
}

}  // namespace ember
