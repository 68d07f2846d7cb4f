// Simd, AVX2 level: 8 lanes in one register. Built with -mavx2 -mfma -mf16c, entered where the CPU
// has all three.
#include <cpuid.h>

#include "kernels/simd_avx2_lanes.h"

namespace ember {
namespace {

// Every CPU with AVX2 so far has it; not all compilers know its name in __builtin_cpu_supports.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

const Simd* avx2_simd() {
  static constexpr Simd kLevel = lanes::make_simd<Avx2Lanes>("cpu-avx2");
  const bool present =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  return present ? &kLevel : nullptr;
}

}  // namespace ember
