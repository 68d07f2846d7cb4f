// RoPE on the CPU, and the table of cosines and sines.
#include "kernels/rope.h"

#include <cmath>

#include "kernels/row_math.h"

namespace ember {

void rope_row(float* values, const float* table_row, size_t rope_dim) {
  for (size_t i = 0; i + 1 < rope_dim; i += 2) {
    const float cosine = table_row[i];
    const float sine = table_row[i + 1];
    const float even = values[i];
    const float odd = values[i + 1];
    values[i] = even * cosine - odd * sine;
    values[i + 1] = even * sine + odd * cosine;
  }
}

void fill_rope_table(std::span<const float> inv_freq, size_t positions, float amplitude,
                     float* table) {
  for (size_t position = 0; position < positions; ++position) {
    float* row = table + position * inv_freq.size() * 2;
    for (size_t i = 0; i < inv_freq.size(); ++i) {
      const float angle = static_cast<float>(position) * inv_freq[i];
      const auto wide = static_cast<double>(angle);
      row[2 * i] = static_cast<float>(std::cos(wide) * static_cast<double>(amplitude));
      row[2 * i + 1] = static_cast<float>(std::sin(wide) * static_cast<double>(amplitude));
    }
  }
}

void rope_cpu(const RopeParams& params, CpuTeam& team) {
  EMBER_CHECK(params.rope_dim % 2 == 0, "RoPE rotates pairs");
  const auto [first, last] = team.share(params.rows * params.heads);
  if (first == last) return;
  ScratchParts parts(team, ScratchParts::room_for<float>(params.rope_dim));
  float* values = parts.take<float>(params.rope_dim);
  for (size_t i = first; i < last; ++i) {
    const size_t row = i / params.heads;
    const size_t head = i % params.heads;
    void* place =
        element(params.x, params.dtype, row * params.x_stride + head * params.head_stride);
    const auto position = static_cast<size_t>(params.positions[row]);
    load_row(place, params.dtype, params.rope_dim, values);
    rope_row(values, params.table + position * params.rope_dim, params.rope_dim);
    store_row(values, params.dtype, params.rope_dim, place);
  }
}

}  // namespace ember
