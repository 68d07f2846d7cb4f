// RMS norm on the CPU: whole rows to each worker.
#include "kernels/rms_norm.h"

#include "kernels/row_math.h"

namespace ember {

void rms_norm_cpu(const RmsNormParams& params, CpuTeam& team) {
  const auto [first, last] = team.share(params.rows);
  if (first == last) return;
  const size_t width = params.width;
  ScratchParts parts(team, 2 * ScratchParts::room_for<float>(width) + sizeof(DotScratch));
  auto* scratch = parts.take<DotScratch>(1);
  float* row = parts.take<float>(width);
  float* weight = parts.take<float>(width);
  load_row(params.weight, params.weight_dtype, width, weight);
  for (size_t i = first; i < last; ++i) {
    load_row(element(params.x, params.dtype, i * params.x_stride), params.dtype, width, row);
    rms_norm_row(row, weight, width, params.eps, row, *scratch);
    store_row(row, params.dtype, width, element(params.y, params.dtype, i * params.y_stride));
  }
}

}  // namespace ember
