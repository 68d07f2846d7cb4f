// Simd lanes of AVX2: 8 fp32 lanes in one register.
//
// Journey    simd_avx2.cc, simd_avx512.cc -> [simd_avx2_lanes] -> simd_lanes
// Invariant  included only by files that are built for AVX2, FMA and F16C, into each of them anew
// Not here   when it may be entered (simd_avx2.cc)
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "kernels/simd_lanes.h"

namespace ember {
namespace {

struct Avx2Lanes {
  static constexpr size_t kLanes = 8;
  static constexpr size_t kValueVectors = 3;  // of a tile of values: with 4 rows, all registers
  __m256 v;

  static __m256i part_mask(size_t n) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), index);
  }

  static Avx2Lanes zero() { return {_mm256_setzero_ps()}; }
  static Avx2Lanes broadcast(float x) { return {_mm256_set1_ps(x)}; }
  static Avx2Lanes load(const void* from) {
    return {_mm256_castsi256_ps(_mm256_loadu_si256(static_cast<const __m256i_u*>(from)))};
  }
  static Avx2Lanes load_part(const void* from, size_t n) {
    return {_mm256_castsi256_ps(
        _mm256_maskload_epi32(static_cast<const int*>(from), part_mask(n)))};
  }
  static Avx2Lanes widen8(__m128i halves) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
  }
  static Avx2Lanes load_bf16(const void* from) {
    return widen8(_mm_loadu_si128(static_cast<const __m128i_u*>(from)));
  }
  static Avx2Lanes load_bf16_part(const void* from, size_t n) {
    alignas(16) unsigned char bytes[16] = {};
    const auto* at = static_cast<const unsigned char*>(from);
    for (size_t i = 0; i < n * 2; ++i) bytes[i] = at[i];
    return load_bf16(bytes);
  }
  // e4m3 as fp16: the sign at the top, exponent and mantissa below it, which reads as the value
  // times 2^-8; all ones stay no number.
  static Avx2Lanes widen_e4m3(__m128i bytes) {
    const __m128i wide = _mm_slli_epi16(_mm_cvtepi8_epi16(bytes), 7);
    const __m128i halves = _mm_and_si128(wide, _mm_set1_epi16(static_cast<short>(0xbfff)));
    const __m128i ones = _mm_set1_epi16(0x3f80);
    const __m128i nan = _mm_cmpeq_epi16(_mm_and_si128(halves, ones), ones);
    const __m256 small = _mm256_cvtph_ps(_mm_or_si128(halves, nan));
    return {_mm256_mul_ps(small, _mm256_set1_ps(256.0f))};
  }
  static __m128i part_bytes(const void* from, size_t n) {
    alignas(16) unsigned char bytes[16] = {};
    const auto* at = static_cast<const unsigned char*>(from);
    for (size_t i = 0; i < n; ++i) bytes[i] = at[i];
    return _mm_load_si128(static_cast<const __m128i*>(static_cast<const void*>(bytes)));
  }
  static Avx2Lanes load_e4m3(const void* from) {
    return widen_e4m3(_mm_loadl_epi64(static_cast<const __m128i_u*>(from)));
  }
  static Avx2Lanes load_e4m3_part(const void* from, size_t n) {
    return widen_e4m3(part_bytes(from, n));
  }
  static Avx2Lanes widen_i8(__m128i bytes) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
  }
  static Avx2Lanes load_i8(const void* from) {
    return widen_i8(_mm_loadl_epi64(static_cast<const __m128i_u*>(from)));
  }
  static Avx2Lanes load_i8_part(const void* from, size_t n) {
    return widen_i8(part_bytes(from, n));
  }
  void store(float* to) const { _mm256_storeu_ps(to, v); }
  void store_part(float* to, size_t n) const { _mm256_maskstore_ps(to, part_mask(n), v); }

  static Avx2Lanes fma(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
  }
  static Avx2Lanes add(Avx2Lanes a, Avx2Lanes b) { return {_mm256_add_ps(a.v, b.v)}; }
  static Avx2Lanes sub(Avx2Lanes a, Avx2Lanes b) { return {_mm256_sub_ps(a.v, b.v)}; }
  static Avx2Lanes mul(Avx2Lanes a, Avx2Lanes b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static Avx2Lanes div(Avx2Lanes a, Avx2Lanes b) { return {_mm256_div_ps(a.v, b.v)}; }
  static Avx2Lanes max(Avx2Lanes a, Avx2Lanes b) { return {_mm256_max_ps(a.v, b.v)}; }
  static Avx2Lanes min(Avx2Lanes a, Avx2Lanes b) { return {_mm256_min_ps(a.v, b.v)}; }

  // Adds neighbours, then pairs, then halves: the tree of simd.h for four vectors at once.
  static __m128 sums(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c, Avx2Lanes d) {
    const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(a.v, b.v), _mm256_hadd_ps(c.v, d.v));
    return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
  }
  static float sum(Avx2Lanes a) { return _mm_cvtss_f32(sums(a, a, a, a)); }
  static void sum4(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c, Avx2Lanes d, float* out) {
    _mm_storeu_ps(out, sums(a, b, c, d));
  }

  // p * 2^n, where `shifted` = 1.5 * 2^23 + n.
  static Avx2Lanes times_power_of_two(Avx2Lanes p, Avx2Lanes shifted) {
    const __m256i n =
        _mm256_sub_epi32(_mm256_castps_si256(shifted.v), _mm256_set1_epi32(0x4b400000));
    const __m256i half = _mm256_srai_epi32(n, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i rest = _mm256_add_epi32(_mm256_sub_epi32(n, half), bias);
    const __m256i second = _mm256_slli_epi32(rest, 23);
    const __m256 scaled = _mm256_mul_ps(p.v, _mm256_castsi256_ps(first));
    return {_mm256_mul_ps(scaled, _mm256_castsi256_ps(second))};
  }

  static void widen(const void* from, float* to, size_t n) {
    const char* at = static_cast<const char*>(from);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) load_bf16(at + i * 2).store(to + i);
    if (i < n) load_bf16_part(at + i * 2, n - i).store_part(to + i, n - i);
  }

  // Rounds to nearest, ties to even; a NaN becomes quiet.
  static __m128i narrow8(Avx2Lanes x) {
    const __m256i bits = _mm256_castps_si256(x.v);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x.v, x.v, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
  }
  static void narrow(const float* from, void* to, size_t n) {
    char* at = static_cast<char*>(to);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      _mm_storeu_si128(static_cast<__m128i_u*>(static_cast<void*>(at + i * 2)),
                       narrow8(load(from + i)));
    }
    if (i == n) return;
    alignas(16) unsigned char bytes[16];
    _mm_store_si128(static_cast<__m128i*>(static_cast<void*>(bytes)),
                    narrow8(load_part(from + i, n - i)));
    for (size_t j = 0; j < (n - i) * 2; ++j) at[i * 2 + j] = static_cast<char>(bytes[j]);
  }
};

}  // namespace
}  // namespace ember
