// Matmul by oneDNN, for CPUs with AVX-512: the same contract as matmul_cpu.
//
// Journey    run_op -> [matmul_onednn] -> oneDNN, or matmul_cpu's arithmetic where it is not fit
// Owns       the verdicts on shapes, one set for the process; primitives, one set a worker
// Invariant  columns are cut at fixed places and rows padded to few sizes, so that a result meets
//            the same kernels on any team; a shape is used only after a check of its own: all sizes
//            give the same bits as one row alone and lie near to the portable kernel; a verdict
//            comes before the first result and never changes
// Threads    any worker
// Not here   which device uses it (kernel_choice.h)
#pragma once

#include <string>

#include "kernels/matmul.h"

namespace ember {

// The instruction set that oneDNN would use is AVX-512 or better.
bool onednn_has_avx512();
// "onednn-2.6.3-avx512_core_bf16"
std::string onednn_family();

// Takes bf16 x bf16, and fp32 x fp32 (for tests on any machine); the rest goes to matmul_cpu.
void matmul_onednn(const MatmulParams& params, CpuTeam& team);

// Whether oneDNN passed its check for column blocks of this product (decides it if need be).
bool onednn_is_fit(size_t n, size_t k, DType in, DType out);

}  // namespace ember
