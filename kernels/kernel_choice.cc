// Kernel choice: oneDNN where the CPU has AVX-512 and it is allowed, portable kernels elsewhere.
#include "kernels/kernel_choice.h"

#include "kernels/matmul_onednn.h"
#include "kernels/simd.h"

namespace ember {
namespace {

// The library's gain is in bf16; everything else stays portable.
void matmul_by_dtype(const MatmulParams& params, CpuTeam& team) {
  const bool halves = params.x_dtype == DType::kBf16 && params.w_dtype == DType::kBf16;
  (halves ? matmul_onednn : matmul_cpu)(params, team);
}

}  // namespace

KernelChoice choose_kernels(bool allow_onednn) {
  if (allow_onednn && onednn_has_avx512()) return {matmul_by_dtype, onednn_family()};
  return {matmul_cpu, simd().family};
}

}  // namespace ember
