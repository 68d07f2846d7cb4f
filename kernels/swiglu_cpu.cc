// SwiGLU on the CPU, in runs that stay in the first-level cache.
#include "kernels/swiglu.h"

#include "kernels/row_math.h"

namespace ember {

void swiglu_cpu(const SwigluParams& params, CpuTeam& team) {
  constexpr size_t kRun = 1024;
  const auto [first, last] = team.share(params.rows * params.width, 64);
  float gate[kRun];
  float up[kRun];
  for (size_t at = first; at < last; at += kRun) {
    const size_t n = std::min(kRun, last - at);
    load_row(element(params.gate, params.dtype, at), params.dtype, n, gate);
    load_row(element(params.up, params.dtype, at), params.dtype, n, up);
    simd().silu_mul(gate, up, gate, n);
    store_row(gate, params.dtype, n, element(params.y, params.dtype, at));
  }
}

}  // namespace ember
