// Matmul: y = x * w^T, for one matrix or a batch (a head each), accumulated in fp32.
//
// Journey    program -> [matmul]; all of a model's linear layers
// Invariant  a row of y depends on its row of x and on w alone: not on the number of rows, on the
//            place of the row or on the number of workers (the K order is fixed)
// Not here   residual adds, activations
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

struct MatmulParams {
  size_t batch = 1;         // independent products; strides below step from one to the next
  size_t rows = 0;          // T
  size_t n = 0;             // output columns
  size_t k = 0;             // inner size
  const void* x = nullptr;  // [batch][rows, k], row stride x_stride; kF32 or kBf16
  DType x_dtype = DType::kBf16;
  size_t x_stride = 0;        // elements from row to row
  size_t x_batch_stride = 0;  // elements
  // [batch][n, k], rows contiguous, unaligned allowed; kF32, kBf16, or (one product only) kF8E4M3
  // or kI8 with w_scales, as in kernels/simd.h.
  const void* w = nullptr;
  DType w_dtype = DType::kBf16;
  size_t w_batch_stride = 0;
  void* y = nullptr;  // [batch][rows, n], row stride y_stride; kF32 or kBf16 (rounded once)
  DType y_dtype = DType::kBf16;
  size_t y_stride = 0;
  size_t y_batch_stride = 0;
  const float* w_scales = nullptr;  // kF8E4M3: [ceil(n / 128), ceil(k / 128)]; kI8: [n]
  // So many rows, the first, are computed by our own kernel also where a library computes the
  // others: it reads weights for a single row as fast as memory gives them.
  size_t own_rows = 0;
};

void matmul_cpu(const MatmulParams& params, CpuTeam& team);

// How a device multiplies: by the kernel above, or one that may use a library.
using MatmulFunction = void (*)(const MatmulParams& params, CpuTeam& team);

// The obviously right form, single-threaded: for tests. Accumulates in double.
void matmul_reference(const MatmulParams& params);

}  // namespace ember
