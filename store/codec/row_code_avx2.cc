// Row code, 64 tokens at a time: masks with BMI2, bytes with AVX2. Entered only where the CPU has
// both.
#include <immintrin.h>

#include "store/codec/row_classes.h"
#include "store/codec/row_code.h"
#include "store/codec/row_turn.h"

namespace ember {
namespace {

__m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i_u*>(from));
}
void store(void* to, __m256i value) { _mm256_storeu_si256(static_cast<__m256i_u*>(to), value); }

uint64_t row_mask(size_t tokens) { return ~uint64_t{0} >> (kRowTokens - tokens); }

// The largest byte: 255 minus the least of the complements, which SSE4.1 finds at once.
uint8_t largest_of(__m256i a, __m256i b) {
  const __m256i both = _mm256_max_epu8(a, b);
  const __m128i bytes =
      _mm_max_epu8(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  const __m128i complements = _mm_xor_si128(bytes, _mm_set1_epi8(-1));
  const __m128i pairs = _mm_min_epu8(complements, _mm_srli_epi16(complements, 8));
  const int least = _mm_cvtsi128_si32(_mm_minpos_epu16(pairs));
  return static_cast<uint8_t>(255 - (least & 0xff));
}

// Which tokens have each distance; the last: kRanks or more.
struct Distances {
  uint64_t mask[kRanks + 1];
};

// The four bits of a distance, each a mask of tokens, and from them the masks of all 16 values.
Distances measure(__m256i a, __m256i b, uint64_t all, uint8_t largest) {
  const __m256i top = _mm256_set1_epi8(static_cast<char>(largest));
  const __m256i most = _mm256_set1_epi8(static_cast<char>(kRanks));
  const __m256i low = _mm256_min_epu8(_mm256_sub_epi8(top, a), most);
  const __m256i high = _mm256_min_epu8(_mm256_sub_epi8(top, b), most);
  const auto bit = [&](int shift) {
    const __m256i bits_low = _mm256_slli_epi16(low, shift);
    const __m256i bits_high = _mm256_slli_epi16(high, shift);
    return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(bits_high))} << 32 |
           static_cast<uint32_t>(_mm256_movemask_epi8(bits_low));
  };
  const uint64_t bit0 = bit(7);
  const uint64_t bit1 = bit(6);
  const uint64_t bit2 = bit(5);
  const uint64_t bit3 = bit(4);
  const uint64_t fine[4] = {~bit1 & ~bit0, ~bit1 & bit0, bit1 & ~bit0, bit1 & bit0};
  const uint64_t coarse[4] = {all & ~bit3 & ~bit2, all & ~bit3 & bit2, all & bit3 & ~bit2,
                              all & bit3 & bit2};
  Distances result;
  for (size_t d = 0; d <= kRanks; ++d) result.mask[d] = coarse[d / 4] & fine[d % 4];
  return result;
}

// Bits of the 16 classes, 16-bit words: first those of the even classes, then the odd ones.
__m256i class_bits(const Distances& distances) {
  alignas(16) uint8_t counts[kRanks + 1];
  for (size_t d = 0; d <= kRanks; ++d) {
    counts[d] = static_cast<uint8_t>(__builtin_popcountll(distances.mask[d]));
  }
  const __m256i count = _mm256_broadcastsi128_si256(
      _mm_load_si128(reinterpret_cast<const __m128i*>(counts)));
  // Even classes in the lower halves, odd ones in the upper: adding neighbours three times leaves
  // one word each.
  __m256i sums[8];
  for (size_t c = 0; c < 8; ++c) {
    sums[c] = _mm256_maddubs_epi16(count, load(kClassLengths[2 * c].data()));
  }
  for (size_t width = 4; width > 0; width /= 2) {
    for (size_t c = 0; c < width; ++c) sums[c] = _mm256_hadd_epi16(sums[2 * c], sums[2 * c + 1]);
  }
  return sums[0];
}

// The first class of the fewest bits, its cost included. Bits are below 4,096: with the class in
// the lowest bits of a word the least word tells both.
uint8_t shortest_class(__m256i bits) {
  static_assert(kMostLength * kRowTokens + 4 < 4096 && kRowClasses == 16);
  static constexpr auto start = [] {
    std::array<uint16_t, kRowClasses> words = {};
    for (size_t i = 0; i < kRowClasses; ++i) {
      const size_t class_id = i < 8 ? 2 * i : 2 * i - 15;
      words[i] = static_cast<uint16_t>(size_t{kClassCosts[class_id]} << 4 | class_id);
    }
    return words;
  }();
  const __m256i words = _mm256_add_epi16(_mm256_slli_epi16(bits, 4), load(start.data()));
  const __m128i least =
      _mm_min_epu16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  return static_cast<uint8_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(least)) & 15);
}

unsigned count_of(uint64_t mask) { return static_cast<unsigned>(__builtin_popcountll(mask)); }

void put_exponents(const uint8_t* row, uint64_t mask, BitWriter& bits) {
  for (; mask != 0; mask &= mask - 1) bits.put(row[__builtin_ctzll(mask)], 8);
}

// The whole planes; returns the tokens that they do not tell.
uint64_t put_whole_planes(const Distances& distances, const RowClass& row_class, size_t tokens,
                          uint64_t all, BitWriter& bits) {
  const auto count = static_cast<unsigned>(tokens);
  const auto tokens_of = [&](size_t rank) { return distances.mask[row_class.distance[rank]]; };
  if (row_class.planes == 1) {
    const uint64_t unknown = all & ~tokens_of(0);
    bits.put(unknown, count);
    return unknown;
  }
  uint64_t odd = tokens_of(1);
  uint64_t twos = tokens_of(2);
  uint64_t unknown = all & ~(tokens_of(0) | odd | twos);
  uint64_t fours = 0;
  if (row_class.planes == 3) {
    odd |= tokens_of(3) | tokens_of(5);
    twos |= tokens_of(3) | tokens_of(6);
    fours = tokens_of(4) | tokens_of(5) | tokens_of(6);
    unknown &= ~(tokens_of(3) | fours);
  }
  bits.put(odd | unknown, count);
  bits.put(twos | unknown, count);
  if (row_class.planes == 3) bits.put(fours | unknown, count);
  return unknown;
}

void put_planes(const Distances& distances, const RowClass& row_class, size_t tokens,
                const uint8_t* row, BitWriter& bits) {
  uint64_t unknown = put_whole_planes(distances, row_class, tokens, row_mask(tokens), bits);
  // Planes get shorter quickly: most rows' fit one word together, so they are put as one.
  uint64_t word = 0;
  unsigned used = 0;
  for (unsigned rank = class_told(row_class); rank < kRanks && unknown != 0; ++rank) {
    const uint64_t on = unknown & ~distances.mask[row_class.distance[rank]];
    const unsigned count = count_of(unknown);
    if (used + count > 64) {
      bits.put(word, used);
      word = 0;
      used = 0;
    }
    word |= _pext_u64(on, unknown) << used;
    used += count;
    unknown = on;
  }
  bits.put(word, used);
  if (unknown != 0) put_exponents(row, unknown, bits);
}

void encode(const uint8_t* values, size_t rows, size_t tokens, const RowHeads& heads,
            BitWriter& to) {
  BitWriter bits = to;  // a copy that no store can be thought to touch stays in registers
  const uint64_t all = row_mask(tokens);
  for (size_t r = 0; r < rows; ++r, values += kRowTokens) {
    const __m256i a = load(values);
    const __m256i b = load(values + 32);
    const uint8_t largest = largest_of(a, b);
    const Distances distances = measure(a, b, all, largest);
    uint8_t class_id = shortest_class(class_bits(distances));
    if (distances.mask[0] == all) class_id = kConstantRow;
    heads.largest[r] = largest;
    heads.classes[r] = class_id;
    if (class_id > kRawRow) {
      put_planes(distances, kClasses[class_id], tokens, values, bits);
    } else if (class_id == kRawRow) {
      put_exponents(values, all, bits);
    }
  }
  to = bits;
}

// Byte i of the result is -1 where bit i of the mask is set: of the lower 32, of the upper 32.
struct Spread {
  __m256i low;
  __m256i high;
};
Spread spread(uint64_t mask) {
  const __m256i all = _mm256_set1_epi64x(static_cast<long long>(mask));
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i low_bytes =
      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3,
                       3, 3, 3, 3, 3, 3, 3);
  const __m256i high_bytes = _mm256_add_epi8(low_bytes, _mm256_set1_epi8(4));
  const auto widen = [&](__m256i bytes) {
    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(all, bytes), bit), bit);
  };
  return {widen(low_bytes), widen(high_bytes)};
}

void take_exponents(uint64_t mask, BitReader& bits, uint8_t* row) {
  for (; mask != 0; mask &= mask - 1) {
    row[__builtin_ctzll(mask)] = static_cast<uint8_t>(bits.take(8));
  }
}

void decode_row(const RowClass& row_class, uint8_t largest, size_t tokens, BitReader& bits,
                uint8_t* row) {
  // One or two whole planes without a branch: which it is cannot be foreseen. Three are rare.
  const uint64_t all = row_mask(tokens);
  const bool wide = row_class.planes > 1;
  const auto count = static_cast<unsigned>(tokens);
  const uint64_t ones = bits.take(count) & all;
  const uint64_t twos = bits.take(wide ? count : 0) & (wide ? all : 0);
  uint64_t unknown = wide ? ones & twos : ones;
  const Spread one = spread(ones);
  const Spread two = spread(twos);
  __m256i low = _mm256_add_epi8(one.low, _mm256_add_epi8(two.low, two.low));  // ranks, negative
  __m256i high = _mm256_add_epi8(one.high, _mm256_add_epi8(two.high, two.high));
  if (row_class.planes == 3) {
    const uint64_t fours = bits.take(count) & all;
    const Spread four = spread(fours);
    const __m256i weight = _mm256_set1_epi8(4);
    low = _mm256_sub_epi8(low, _mm256_and_si256(four.low, weight));
    high = _mm256_sub_epi8(high, _mm256_and_si256(four.high, weight));
    unknown &= fours;
  }
  const auto go_on = [&](uint64_t on) {
    const Spread set = spread(on);
    low = _mm256_add_epi8(low, set.low);
    high = _mm256_add_epi8(high, set.high);
    unknown = on;
  };
  unsigned rank = class_told(row_class);
  go_on(_pdep_u64(bits.take(count_of(unknown)), unknown));
  // The planes that are left are short: they are taken from one word as long as it lasts.
  uint64_t word = bits.ahead();
  unsigned used = 0;
  for (++rank; rank < kRanks && unknown != 0; ++rank) {
    const unsigned here = count_of(unknown);
    if (used + here > 64) {
      bits.take(used);
      word = bits.ahead();
      used = 0;
    }
    const uint64_t on = _pdep_u64(word, unknown);
    word = word >> 1 >> (here - 1);
    used += here;
    go_on(on);
  }
  bits.take(used);
  const __m256i zero = _mm256_setzero_si256();
  const __m256i distance = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(row_class.distance.data())));
  const __m256i top = _mm256_set1_epi8(static_cast<char>(largest));
  const auto value = [&](__m256i ranks) {
    return _mm256_sub_epi8(top, _mm256_shuffle_epi8(distance, _mm256_sub_epi8(zero, ranks)));
  };
  store(row, value(low));
  store(row + 32, value(high));
  if (unknown != 0) take_exponents(unknown, bits, row);
}

size_t decode(const RowHeads& heads, size_t rows, size_t tokens, BitReader& from,
              uint8_t* values) {
  BitReader bits = from;  // a copy that no store can be thought to touch stays in registers
  size_t r = 0;
  for (; r < rows && bits.within(); ++r, values += kRowTokens) {
    const uint8_t class_id = heads.classes[r] % kRowClasses;
    if (class_id > kRawRow) {
      decode_row(kClasses[class_id], heads.largest[r], tokens, bits, values);
      continue;
    }
    const __m256i top = _mm256_set1_epi8(static_cast<char>(heads.largest[r]));
    store(values, top);
    store(values + 32, top);
    if (class_id == kRawRow) take_exponents(row_mask(tokens), bits, values);
  }
  from = bits;
  return r;
}

bool cpu_has_it() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

}  // namespace

const RowCode* avx2_row_code() {
  static constexpr RowCode code = {"avx2", avx2_split, avx2_merge, encode, decode};
  return cpu_has_it() ? &code : nullptr;
}

}  // namespace ember
