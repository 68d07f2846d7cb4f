// Residual add on the CPU, in runs that stay in the first-level cache.
#include "kernels/residual_add.h"

#include "kernels/row_math.h"

namespace ember {

void residual_add_cpu(const ResidualAddParams& params, CpuTeam& team) {
  constexpr size_t kRun = 1024;
  const auto [first, last] = team.share(params.count, 64);
  float h[kRun];
  float x[kRun];
  for (size_t at = first; at < last; at += kRun) {
    const size_t n = std::min(kRun, last - at);
    void* place = element(params.h, params.dtype, at);
    load_row(place, params.dtype, n, h);
    load_row(element(params.x, params.dtype, at), params.dtype, n, x);
    for (size_t i = 0; i < n; ++i) h[i] += x[i];
    store_row(h, params.dtype, n, place);
  }
}

}  // namespace ember
