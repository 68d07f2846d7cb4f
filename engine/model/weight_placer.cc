// Weight placer: mapped where it can be, else converted into memory of the device.
#include "engine/model/weight_placer.h"

#include <utility>

#include "kernels/simd.h"

namespace ember {
namespace {

bool is_aligned(const void* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % dtype_bytes(dtype) == 0;
}

}  // namespace

DType WeightPlacer::plain_dtype(DType stored) const {
  if (precision_ == DType::kBf16 || stored == DType::kBf16) return DType::kBf16;
  return DType::kF32;
}

DType WeightPlacer::linear_dtype(DType stored) const {
  if (form_ == WeightForm::kInt8) return DType::kI8;
  return stored == DType::kF8E4M3 ? stored : plain_dtype(stored);
}

Result<TensorView> WeightPlacer::fetch(const std::string& name, const std::vector<size_t>& shape) {
  known_.insert(name);
  return weights_.checkpoint->tensor(name, shape);
}

Result<std::byte*> WeightPlacer::own(size_t bytes) {
  EMBER_ASSIGN(Buffer buffer, device_.allocate(bytes));
  weights_.owned.push_back(std::move(buffer));
  return weights_.owned.back().bytes();
}

Result<const float*> WeightPlacer::fetch_scales(const std::string& name, size_t rows, size_t cols) {
  EMBER_ASSIGN(const TensorView view, fetch(name, {(rows + kScaleBlock - 1) / kScaleBlock,
                                                   (cols + kScaleBlock - 1) / kScaleBlock}));
  const void* mapped = view.bytes.data();
  if (view.dtype == DType::kF32 && is_aligned(mapped, DType::kF32)) {
    return static_cast<const float*>(mapped);
  }
  if (view.dtype == DType::kF8E4M3) {
    return Error{ErrorCode::kUnsupported, "tensor " + name +
                                              ": found fp8_e4m3 scales, expected fp32, bf16, fp16 "
                                              "or fp8_e8m0"};
  }
  EMBER_ASSIGN(std::byte * made, own(view.elements() * sizeof(float)));
  convert_values(mapped, view.dtype, made, DType::kF32, view.elements());
  return reinterpret_cast<const float*>(made);
}

Result<Weight> WeightPlacer::stored_matrix(const std::string& name, size_t rows, size_t cols) {
  EMBER_ASSIGN(const TensorView view, fetch(name, {rows, cols}));
  Weight weight{view.bytes.data(), view.dtype, rows, cols, nullptr};
  if (view.dtype == DType::kF8E8M0) {
    return Error{ErrorCode::kUnsupported,
                 "tensor " + name + ": found fp8_e8m0, which only scales are stored in"};
  }
  if (view.dtype == DType::kF8E4M3) {
    EMBER_ASSIGN(weight.scales, fetch_scales(name + "_scale_inv", rows, cols));
  }
  values_ += view.elements();
  return weight;
}

Result<Weight> WeightPlacer::place(const std::string& name, const Weight& stored, DType dtype) {
  if (stored.dtype == dtype && is_aligned(stored.data, dtype)) return stored;
  Weight weight{nullptr, dtype, stored.rows, stored.cols, nullptr};
  const size_t bytes = stored.rows * stored.cols * dtype_bytes(dtype);
  if (dtype != DType::kI8) {
    EMBER_ASSIGN(std::byte * made, own(bytes));
    widen_matrix(stored, dtype, made);
    weight.data = made;
    return weight;
  }
  // One allocation for both: the scales first, so that they are aligned.
  const size_t scale_bytes = (stored.rows * sizeof(float) + 63) / 64 * 64;
  EMBER_ASSIGN(std::byte * made, own(scale_bytes + bytes));
  auto* scales = reinterpret_cast<float*>(made);
  auto* values = reinterpret_cast<int8_t*>(made + scale_bytes);
  if (!quantize_rows(stored, values, scales)) {
    return Error{ErrorCode::kCorruption,
                 "tensor " + name + ": holds a value that is no finite number"};
  }
  weight.data = values;
  weight.scales = scales;
  return weight;
}

Status WeightPlacer::linear(const std::string& name, size_t rows, size_t cols, Weight& weight) {
  EMBER_ASSIGN(const Weight stored, stored_matrix(name, rows, cols));
  EMBER_ASSIGN(weight, place(name, stored, linear_dtype(stored.dtype)));
  return {};
}

Status WeightPlacer::matrix(const std::string& name, size_t rows, size_t cols, Weight& weight) {
  EMBER_ASSIGN(const Weight stored, stored_matrix(name, rows, cols));
  EMBER_ASSIGN(weight, place(name, stored, plain_dtype(stored.dtype)));
  return {};
}

Status WeightPlacer::unrounded(const std::string& name, const std::vector<size_t>& shape,
                               Weight& weight) {
  const size_t cols = shape.size() > 1 ? shape.back() : 1;
  EMBER_ASSIGN(const TensorView view, fetch(name, shape));
  if (view.dtype == DType::kF8E4M3 || view.dtype == DType::kF8E8M0) {
    return Error{ErrorCode::kUnsupported, "tensor " + name + ": found " +
                                              std::string(dtype_name(view.dtype)) +
                                              ", expected bf16, fp16 or fp32"};
  }
  values_ += view.elements();
  const Weight stored{view.bytes.data(), view.dtype, shape.front(), cols, nullptr};
  EMBER_ASSIGN(weight,
               place(name, stored, view.dtype == DType::kBf16 ? DType::kBf16 : DType::kF32));
  return {};
}

Status WeightPlacer::floats(const std::string& name, size_t size, std::vector<float>& values) {
  Weight weight;
  EMBER_TRY(unrounded(name, {size}, weight));
  values.resize(size);
  convert_values(weight.data, weight.dtype, values.data(), DType::kF32, size);
  return {};
}

}  // namespace ember
