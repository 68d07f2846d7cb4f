// Kernel peak: what this machine can do at most, measured in the same run.
//
// Journey    none; the denominators of kernel_bench
#pragma once

#include <cstddef>

namespace ember {

// Fused multiply-adds of fp32 in 12 independent registers; returns flop. `sink` keeps it alive.
double run_fma(size_t rounds, float* sink);
// Reads all values once; returns their sum.
float read_all(const float* values, size_t count);

}  // namespace ember
