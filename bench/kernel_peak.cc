// Kernel peak: loops that do nothing but multiply and add, or read.
#include "bench/kernel_peak.h"

namespace ember {
namespace {

// Eight lanes; the compiler makes of them what the build flags of this file allow.
using Lanes = float __attribute__((vector_size(32)));

}  // namespace

double run_fma(size_t rounds, float* sink) {
#if defined(__FMA__)
  Lanes acc[12];
  for (auto& a : acc) a = Lanes{} + *sink;
  const Lanes x = Lanes{} + 0.999f;
  const Lanes y = Lanes{} + 1e-7f;
  for (size_t i = 0; i < rounds; ++i) {
    for (auto& a : acc) asm("vfmadd213ps %2, %1, %0" : "+x"(a) : "x"(x), "x"(y));
  }
  for (const auto& a : acc) *sink += a[0];
  return static_cast<double>(rounds) * 12 * 8 * 2;
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
