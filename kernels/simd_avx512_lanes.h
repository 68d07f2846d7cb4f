// Simd lanes of AVX-512: 16 fp32 lanes, and pairs of 8: two columns of an inner product, whose
// lanes never meet.
//
// Journey    simd_avx512.cc -> [simd_avx512_lanes] -> simd_lanes
// Invariant  included only by files that are built for AVX-512 (F, BW, DQ, VL)
// Not here   when it may be entered (simd_avx512.cc)
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/simd_lanes.h"

namespace ember {
namespace {

// Bits 0 to n - 1; n at most 16.
inline __mmask16 first_lanes(size_t n) { return static_cast<__mmask16>((1u << n) - 1); }

struct Avx512Lanes {
  static constexpr size_t kLanes = 16;
  static constexpr size_t kValueVectors = 4;
  __m512 v;

  static Avx512Lanes zero() { return {_mm512_setzero_ps()}; }
  static Avx512Lanes broadcast(float x) { return {_mm512_set1_ps(x)}; }
  static Avx512Lanes load(const void* from) { return {_mm512_loadu_ps(from)}; }
  static Avx512Lanes load_part(const void* from, size_t n) {
    return {_mm512_maskz_loadu_ps(first_lanes(n), from)};
  }
  void store(float* to) const { _mm512_storeu_ps(to, v); }
  void store_part(float* to, size_t n) const { _mm512_mask_storeu_ps(to, first_lanes(n), v); }

  using L = Avx512Lanes;
  static L fma(L a, L b, L c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static L add(L a, L b) { return {_mm512_add_ps(a.v, b.v)}; }
  static L sub(L a, L b) { return {_mm512_sub_ps(a.v, b.v)}; }
  static L mul(L a, L b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static L div(L a, L b) { return {_mm512_div_ps(a.v, b.v)}; }
  static L max(L a, L b) { return {_mm512_max_ps(a.v, b.v)}; }
  static L min(L a, L b) { return {_mm512_min_ps(a.v, b.v)}; }

  // p * 2^n, where `shifted` = 1.5 * 2^23 + n.
  static L times_power_of_two(L p, L shifted) {
    const __m512i n =
        _mm512_sub_epi32(_mm512_castps_si512(shifted.v), _mm512_set1_epi32(0x4b400000));
    const __m512i half = _mm512_srai_epi32(n, 1);
    const __m512i bias = _mm512_set1_epi32(127);
    const __m512i first = _mm512_slli_epi32(_mm512_add_epi32(half, bias), 23);
    const __m512i rest = _mm512_add_epi32(_mm512_sub_epi32(n, half), bias);
    const __m512i second = _mm512_slli_epi32(rest, 23);
    const __m512 scaled = _mm512_mul_ps(p.v, _mm512_castsi512_ps(first));
    return {_mm512_mul_ps(scaled, _mm512_castsi512_ps(second))};
  }
};

// Lanes 0 to 7 belong to one column, 8 to 15 to the next.
struct Avx512Pair {
  __m512 v;

  static Avx512Pair zero() { return {_mm512_setzero_ps()}; }
  static Avx512Pair load(const float* both) { return {_mm512_loadu_ps(both)}; }
  void store(float* to) const { _mm512_storeu_ps(to, v); }
  // 8 values of a row of x, for both columns.
  static Avx512Pair load_row(const float* x) {
    return {_mm512_broadcast_f32x8(_mm256_loadu_ps(x))};
  }
  static Avx512Pair load_row_part(const float* x, size_t n) {
    const auto mask = static_cast<__mmask8>(first_lanes(n));
    return {_mm512_broadcast_f32x8(_mm256_maskz_loadu_ps(mask, x))};
  }
  static Avx512Pair fma(Avx512Pair a, Avx512Pair b, Avx512Pair c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }

  // Within each fourth of a register: neighbours of a, then those of b.
  static __m512 neighbours(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
  }
  // The tree of simd.h for four rows at once: the sums of the first column, then of the second.
  static __m256 sums(Avx512Pair a, Avx512Pair b, Avx512Pair c, Avx512Pair d) {
    const __m512 pairs = neighbours(neighbours(a.v, b.v), neighbours(c.v, d.v));
    const __m512 halves = _mm512_shuffle_f32x4(pairs, pairs, 0xb1);
    const __m512 all = _mm512_add_ps(pairs, halves);  // every second fourth
    return _mm512_castps512_ps256(_mm512_shuffle_f32x4(all, all, 0x08));
  }
};

// 32 bf16 of each of two columns, as four steps of a pair.
struct HalfSteps {
  __m512i first, second;

  static HalfSteps load(const char* a, const char* b) {
    return {_mm512_loadu_si512(a), _mm512_loadu_si512(b)};
  }
  static HalfSteps load_part(const char* a, const char* b, size_t n) {
    const auto mask = static_cast<__mmask32>((uint64_t{1} << n) - 1);
    return {_mm512_maskz_loadu_epi16(mask, a), _mm512_maskz_loadu_epi16(mask, b)};
  }
  // Words 8 S to 8 S + 7 of each, above 16 bits of zeros: as fp32.
  template <size_t S>
  Avx512Pair step() const {
    constexpr __mmask32 kHighWords = 0xaaaaaaaa;
    static constexpr Words kWords = words(S);
    const __m512i index = _mm512_load_si512(kWords.at);
    return {_mm512_castsi512_ps(_mm512_maskz_permutex2var_epi16(kHighWords, first, index, second))};
  }

 private:
  struct alignas(64) Words {
    short at[32] = {};
  };
  static constexpr Words words(size_t step) {
    Words words;
    for (size_t i = 0; i < 8; ++i) {
      words.at[2 * i + 1] = static_cast<short>(step * 8 + i);
      words.at[16 + 2 * i + 1] = static_cast<short>(32 + step * 8 + i);
    }
    return words;
  }
};

}  // namespace
}  // namespace ember
