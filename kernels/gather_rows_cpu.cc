// Gather rows on the CPU.
#include "kernels/gather_rows.h"

#include "kernels/row_math.h"

namespace ember {

void gather_rows_cpu(const GatherRowsParams& params, CpuTeam& team) {
  const auto [first, last] = team.share(params.rows);
  if (first == last) return;
  ScratchParts parts(team, ScratchParts::room_for<float>(params.width));
  float* wide = parts.take<float>(params.width);
  for (size_t i = first; i < last; ++i) {
    const int32_t id = params.ids[i];
    EMBER_CHECK(id >= 0 && static_cast<size_t>(id) < params.table_rows, "id outside the table");
    const void* from =
        element(params.table, params.table_dtype, static_cast<size_t>(id) * params.width);
    void* to = element(params.out, params.out_dtype, i * params.width);
    if (params.table_dtype == params.out_dtype) {
      std::memcpy(to, from, params.width * dtype_bytes(params.out_dtype));
    } else {
      load_row(from, params.table_dtype, params.width, wide);
      store_row(wide, params.out_dtype, params.width, to);
    }
  }
}

}  // namespace ember
