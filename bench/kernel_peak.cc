// Kernel peak: loops that do nothing but multiply and add, or read.
#include "bench/kernel_peak.h"

namespace ember {
namespace {

// Eight lanes; the compiler makes of them what the build flags of this file allow.
using Lanes = float __attribute__((vector_size(32)));
using WideLanes = float __attribute__((vector_size(64)));

#if defined(__FMA__)
template <class V>
[[gnu::always_inline]] inline double fma_rounds(size_t rounds, float* sink) {
  const V start = V{} + *sink;
  V a = start, b = start, c = start, d = start, e = start, f = start, g = start, h = start;
  V p = start, q = start, r = start, s = start;
  const V x = V{} + 0.999f;
  const V y = V{} + 1e-7f;
  for (size_t i = 0; i < rounds; ++i) {
    asm volatile(
        "vfmadd213ps %[y], %[x], %0\n"
        "vfmadd213ps %[y], %[x], %1\n"
        "vfmadd213ps %[y], %[x], %2\n"
        "vfmadd213ps %[y], %[x], %3\n"
        "vfmadd213ps %[y], %[x], %4\n"
        "vfmadd213ps %[y], %[x], %5\n"
        "vfmadd213ps %[y], %[x], %6\n"
        "vfmadd213ps %[y], %[x], %7\n"
        "vfmadd213ps %[y], %[x], %8\n"
        "vfmadd213ps %[y], %[x], %9\n"
        "vfmadd213ps %[y], %[x], %10\n"
        "vfmadd213ps %[y], %[x], %11\n"
        : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g),
          "+v"(h), "+v"(p), "+v"(q), "+v"(r), "+v"(s)
        : [x] "v"(x), [y] "v"(y));
  }
  const V all = a + b + c + d + e + f + g + h + p + q + r + s;
  *sink += all[0];
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(sizeof(V) / sizeof(float));
}

__attribute__((target("avx512f"))) double wide_fma_rounds(size_t rounds, float* sink) {
  return fma_rounds<WideLanes>(rounds, sink);
}
#endif

}  // namespace

double run_fma(size_t rounds, float* sink) {
#if defined(__FMA__)
  const bool wide = __builtin_cpu_supports("avx512f");
  return wide ? wide_fma_rounds(rounds, sink) : fma_rounds<Lanes>(rounds, sink);
#else
  float acc[8] = {};
  for (size_t i = 0; i < rounds; ++i) {
    for (float& a : acc) a = a * 0.999f + 1e-7f;
  }
  for (const float a : acc) *sink += a;
  return static_cast<double>(rounds) * 8 * 2;
#endif
}

float read_all(const float* values, size_t count) {
  Lanes sums[4] = {};
  for (size_t i = 0; i + 32 <= count; i += 32) {
    for (size_t j = 0; j < 4; ++j) {
      Lanes lanes;
      __builtin_memcpy(&lanes, values + i + j * 8, sizeof lanes);
      sums[j] += lanes;
    }
  }
  return sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0];
}

}  // namespace ember
