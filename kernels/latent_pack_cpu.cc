// Latent pack on the CPU: norm, rotation and the one rounding of a cached row.
#include "kernels/latent_pack.h"

#include "kernels/latent_row.h"
#include "kernels/rope.h"
#include "kernels/row_math.h"

namespace ember {

void latent_pack_cpu(const LatentPackParams& params, CpuTeam& team) {
  const auto [first, last] = team.share(params.rows);
  if (first == last) return;
  const size_t latent = params.latent_dim;
  const size_t width = latent + params.rope_dim;
  ScratchParts parts(team, sizeof(DotScratch) + ScratchParts::room_for<float>(width) +
                               ScratchParts::room_for<float>(latent));
  auto* scratch = parts.take<DotScratch>(1);
  float* row = parts.take<float>(width);
  float* weight = parts.take<float>(latent);
  load_row(params.norm_weight, params.norm_dtype, latent, weight);
  for (size_t i = first; i < last; ++i) {
    load_row(element(params.u, params.u_dtype, i * width), params.u_dtype, width, row);
    rms_norm_row(row, weight, latent, params.eps, row, *scratch);
    const auto position = static_cast<size_t>(params.positions[i]);
    rope_row(row + latent, params.rope_table + position * params.rope_dim, params.rope_dim);
    std::byte* place = params.cache.row(params.sequences[i], params.positions[i]);
    store_latent_row(row, params.cache.dtype, latent, params.rope_dim, place);
  }
}

}  // namespace ember
