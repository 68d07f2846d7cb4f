// Kernel choice: oneDNN for the rows of long prompts where the CPU has AVX-512 and it is allowed,
// our own kernels for all else.
#include "kernels/kernel_choice.h"

#include <algorithm>

#include "kernels/matmul_onednn.h"
#include "kernels/row_math.h"
#include "kernels/simd.h"

namespace ember {
namespace {

MatmulParams rows_of(const MatmulParams& params, size_t first, size_t rows) {
  MatmulParams part = params;
  part.rows = rows;
  part.x = element(params.x, params.x_dtype, first * params.x_stride);
  part.y = element(params.y, params.y_dtype, first * params.y_stride);
  return part;
}

// The library's gain is in bf16, and in more rows than a few.
void matmul_with_library(const MatmulParams& params, CpuTeam& team) {
  const bool halves = params.x_dtype == DType::kBf16 && params.w_dtype == DType::kBf16;
  const size_t own = halves ? std::min(params.own_rows, params.rows) : params.rows;
  if (own > 0) matmul_cpu(rows_of(params, 0, own), team);
  if (own < params.rows) matmul_onednn(rows_of(params, own, params.rows - own), team);
}

}  // namespace

KernelChoice choose_kernels(bool allow_onednn) {
  if (allow_onednn && onednn_has_avx512()) {
    return {matmul_with_library, std::string(simd().family) + "+" + onednn_family()};
  }
  return {matmul_cpu, simd().family};
}

}  // namespace ember
