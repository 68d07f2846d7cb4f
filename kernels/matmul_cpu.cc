// Matmul on the CPU, portable path: output columns to each worker, rows in blocks of 64.
#include "kernels/matmul.h"

#include "kernels/row_math.h"

namespace ember {
namespace {

// Columns of a bf16 result that wait in fp32 before they are rounded.
constexpr size_t kRoundColumns = 10 * kDotColumns;

struct MatmulScratch {
  DotScratch* dot;
  float* x;  // [kDotRows, padded_stride(k)]
  float* y;  // [kDotRows, kRoundColumns]
};

// One block of up to kDotRows rows, columns [first, last) of one product.
void matmul_block(const MatmulParams& p, size_t batch, size_t row, size_t first, size_t last,
                  const MatmulScratch& scratch) {
  const size_t rows = std::min(kDotRows, p.rows - row);
  DotBlock block;
  block.rows = rows;
  block.k = p.k;
  block.w_dtype = p.w_dtype;
  block.w_stride = p.k;
  block.w_scales = p.w_scales;
  const void* x = element(p.x, p.x_dtype, batch * p.x_batch_stride + row * p.x_stride);
  block.x = scratch.x;
  block.x_stride = padded_stride(p.k);
  for (size_t r = 0; r < rows; ++r) {
    load_row(element(x, p.x_dtype, r * p.x_stride), p.x_dtype, p.k,
             scratch.x + r * block.x_stride);
  }
  void* y = element(p.y, p.y_dtype, batch * p.y_batch_stride + row * p.y_stride);
  const bool direct = p.y_dtype == DType::kF32;
  const size_t step = direct ? last - first : kRoundColumns;
  for (size_t column = first; column < last; column += step) {
    block.n = std::min(step, last - column);
    block.w = element(p.w, p.w_dtype, batch * p.w_batch_stride + column * p.k);
    block.w_row = column;
    block.y = direct ? static_cast<float*>(y) + column : scratch.y;
    block.y_stride = direct ? p.y_stride : kRoundColumns;
    simd().dot(block, *scratch.dot);
    for (size_t r = 0; r < rows && !direct; ++r) {
      store_row(scratch.y + r * kRoundColumns, p.y_dtype, block.n,
                element(y, p.y_dtype, r * p.y_stride + column));
    }
  }
}

}  // namespace

void matmul_cpu(const MatmulParams& params, CpuTeam& team) {
  EMBER_CHECK(is_float_dtype(params.x_dtype) && is_float_dtype(params.y_dtype),
              "matmul takes and gives fp32 or bf16");
  check_weights(params.w_dtype, params.w_scales);
  EMBER_CHECK(params.w_scales == nullptr || params.batch == 1, "quantised weights of one product");
  const size_t panels = (params.n + kDotColumns - 1) / kDotColumns;
  const auto [first, last] = team.share(params.batch * panels);
  if (first == last) return;
  const size_t x_floats = std::min(kDotRows, params.rows) * padded_stride(params.k);
  const size_t y_floats = params.y_dtype == DType::kF32 ? 0 : kDotRows * kRoundColumns;
  ScratchParts parts(team, sizeof(DotScratch) + ScratchParts::room_for<float>(x_floats) +
                               ScratchParts::room_for<float>(y_floats));
  MatmulScratch scratch;
  scratch.dot = parts.take<DotScratch>(1);
  scratch.x = parts.take<float>(x_floats);
  scratch.y = parts.take<float>(y_floats);
  // Successive panels of one product are taken together, so that rows are widened once for all.
  for (size_t at = first; at < last;) {
    const size_t batch = at / panels;
    const size_t end = std::min(last, (batch + 1) * panels);
    const size_t first_column = (at - batch * panels) * kDotColumns;
    const size_t last_column = std::min((end - batch * panels) * kDotColumns, params.n);
    for (size_t row = 0; row < params.rows; row += kDotRows) {
      matmul_block(params, batch, row, first_column, last_column, scratch);
    }
    at = end;
  }
}

}  // namespace ember
