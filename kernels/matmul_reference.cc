// Matmul, the obviously right form.
#include "kernels/matmul.h"
#include "kernels/row_math.h"

namespace ember {
void matmul_reference(const MatmulParams& p) {
  for (size_t b = 0; b < p.batch; ++b) {
    for (size_t t = 0; t < p.rows; ++t) {
      for (size_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (size_t i = 0; i < p.k; ++i) {
          sum += value_at(p.x, p.x_dtype, b * p.x_batch_stride + t * p.x_stride + i) *
                 weight_at(element(p.w, p.w_dtype, b * p.w_batch_stride), p.w_dtype, p.w_scales,
                           p.k, j, i);
        }
        const auto rounded = static_cast<float>(sum);
        store_row(&rounded, p.y_dtype, 1,
                  element(p.y, p.y_dtype, b * p.y_batch_stride + t * p.y_stride + j));
      }
    }
  }
}

}  // namespace ember
