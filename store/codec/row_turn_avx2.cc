// Row turn with AVX2: tiles of 16 tokens and 32 channels, the rest value by value.
#include "store/codec/row_turn.h"

#include <immintrin.h>

#include <cstring>

#include "store/codec/row_code.h"

namespace ember {
namespace {

constexpr size_t kTileChannels = 32;
constexpr size_t kTileTokens = 16;

__m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i_u*>(from));
}
void store(void* to, __m256i value) { _mm256_storeu_si256(static_cast<__m256i_u*>(to), value); }

// In each half apart, rows of 16 bytes become columns: byte j of half h of row i goes to byte i of
// half h of row j.
void transpose(__m256i (&rows)[kTileTokens]) {
  __m256i other[kTileTokens];
  const auto interleave = [](const __m256i(&from)[kTileTokens], __m256i(&to)[kTileTokens]) {
    for (size_t i = 0; i < 8; ++i) {
      to[2 * i] = _mm256_unpacklo_epi8(from[i], from[i + 8]);
      to[2 * i + 1] = _mm256_unpackhi_epi8(from[i], from[i + 8]);
    }
  };
  interleave(rows, other);
  interleave(other, rows);
  interleave(rows, other);
  interleave(other, rows);
}

// 16 tokens of 32 channels.
void split_tile(const std::byte* raw, size_t channels, uint8_t* exponents, uint8_t* rest) {
  const __m256i low_byte = _mm256_set1_epi16(0xff);
  const __m256i mantissa = _mm256_set1_epi16(0x7f);
  const __m256i sign = _mm256_set1_epi16(0x80);
  __m256i rows[kTileTokens];
  for (size_t t = 0; t < kTileTokens; ++t) {
    __builtin_prefetch(raw + 2 * t * channels + 4 * kTileChannels);
    const __m256i a = load(raw + 2 * t * channels);
    const __m256i b = load(raw + 2 * t * channels + 32);
    const __m256i exponent =
        _mm256_packus_epi16(_mm256_and_si256(_mm256_srli_epi16(a, 7), low_byte),
                            _mm256_and_si256(_mm256_srli_epi16(b, 7), low_byte));
    const auto others = [&](__m256i x) {
      return _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(x, 8), sign),
                             _mm256_and_si256(x, mantissa));
    };
    const __m256i other = _mm256_packus_epi16(others(a), others(b));
    rows[t] = _mm256_permute4x64_epi64(exponent, 0xd8);
    store(rest + t * channels, _mm256_permute4x64_epi64(other, 0xd8));
  }
  transpose(rows);
  for (size_t c = 0; c < kTileTokens; ++c) {
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(exponents + c * kRowTokens),
                     _mm256_castsi256_si128(rows[c]));
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(exponents + (c + 16) * kRowTokens),
                     _mm256_extracti128_si256(rows[c], 1));
  }
}

void merge_tile(const uint8_t* exponents, const uint8_t* rest, size_t channels, std::byte* raw) {
  const __m256i mantissa = _mm256_set1_epi8(0x7f);
  const __m256i sign = _mm256_set1_epi8(static_cast<char>(0x80));
  __m256i rows[kTileTokens];
  for (size_t c = 0; c < kTileTokens; ++c) {
    const auto* low = reinterpret_cast<const __m128i_u*>(exponents + c * kRowTokens);
    const auto* high = reinterpret_cast<const __m128i_u*>(exponents + (c + 16) * kRowTokens);
    rows[c] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                      _mm_loadu_si128(high), 1);
  }
  transpose(rows);
  for (size_t t = 0; t < kTileTokens; ++t) {
    const __m256i other = load(rest + t * channels);
    const __m256i lower =
        _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi16(rows[t], 7), sign),
                        _mm256_and_si256(other, mantissa));
    const __m256i upper =
        _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(rows[t], 1), mantissa),
                        _mm256_and_si256(other, sign));
    const __m256i even = _mm256_unpacklo_epi8(lower, upper);
    const __m256i odd = _mm256_unpackhi_epi8(lower, upper);
    // The rows lie too far apart for the CPU to foresee the next tile.
    __builtin_prefetch(rest + t * channels + 2 * kTileChannels);
    __builtin_prefetch(raw + 2 * t * channels + 4 * kTileChannels, 1);
    store(raw + 2 * t * channels, _mm256_permute2x128_si256(even, odd, 0x20));
    store(raw + 2 * t * channels + 32, _mm256_permute2x128_si256(even, odd, 0x31));
  }
}

}  // namespace

void avx2_split(const std::byte* raw, size_t tokens, size_t channels, uint8_t* exponents,
                uint8_t* rest) {
  const size_t tiled_tokens = tokens / kTileTokens * kTileTokens;
  const size_t tiled_channels = channels / kTileChannels * kTileChannels;
  for (size_t t = 0; t < tiled_tokens; t += kTileTokens) {
    for (size_t c = 0; c < tiled_channels; c += kTileChannels) {
      split_tile(raw + 2 * (t * channels + c), channels, exponents + c * kRowTokens + t,
                 rest + t * channels + c);
    }
  }
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = t < tiled_tokens ? tiled_channels : 0; c < channels; ++c) {
      uint16_t bits;
      std::memcpy(&bits, raw + 2 * (t * channels + c), sizeof bits);
      exponents[c * kRowTokens + t] = bf16_exponent(bits);
      rest[t * channels + c] = bf16_rest(bits);
    }
  }
}

void avx2_merge(const uint8_t* exponents, const uint8_t* rest, size_t tokens, size_t channels,
                std::byte* raw) {
  const size_t tiled_tokens = tokens / kTileTokens * kTileTokens;
  const size_t tiled_channels = channels / kTileChannels * kTileChannels;
  for (size_t t = 0; t < tiled_tokens; t += kTileTokens) {
    for (size_t c = 0; c < tiled_channels; c += kTileChannels) {
      merge_tile(exponents + c * kRowTokens + t, rest + t * channels + c, channels,
                 raw + 2 * (t * channels + c));
    }
  }
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = t < tiled_tokens ? tiled_channels : 0; c < channels; ++c) {
      const uint16_t bits = bf16_bits(exponents[c * kRowTokens + t], rest[t * channels + c]);
      std::memcpy(raw + 2 * (t * channels + c), &bits, sizeof bits);
    }
  }
}

}  // namespace ember
