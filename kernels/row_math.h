// Row math: rows between their stored dtype and fp32, and the arithmetic that operations share.
//
// Journey    the operations' *_cpu.cc -> [row_math] -> simd
// Invariant  widening is exact, storing rounds once
// Not here   which rows a worker takes
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/dtype.h"
#include "base/fp8.h"
#include "kernels/cpu_team.h"
#include "kernels/simd.h"

namespace ember {

inline bool is_float_dtype(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBf16; }

inline bool is_quantized(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kI8; }

// Weights are fp32 or bf16 and have no scales, or they are quantised and have some.
inline void check_weights(DType dtype, const float* scales) {
  EMBER_CHECK(is_quantized(dtype) ? scales != nullptr : is_float_dtype(dtype) && scales == nullptr,
              "weights are fp32 or bf16, or fp8 or int8 with scales");
}

// Address of element `index` of an array of `dtype`.
inline const void* element(const void* base, DType dtype, size_t index) {
  return static_cast<const char*>(base) + index * dtype_bytes(dtype);
}
inline void* element(void* base, DType dtype, size_t index) {
  return static_cast<char*>(base) + index * dtype_bytes(dtype);
}

inline void load_row(const void* from, DType dtype, size_t n, float* to) {
  if (dtype == DType::kBf16) {
    simd().widen(from, to, n);
  } else {
    EMBER_CHECK(dtype == DType::kF32, "operands are fp32 or bf16");
    std::memcpy(to, from, n * sizeof(float));
  }
}

inline void store_row(const float* from, DType dtype, size_t n, void* to) {
  if (dtype == DType::kBf16) {
    simd().narrow(from, to, n);
  } else {
    EMBER_CHECK(dtype == DType::kF32, "results are fp32 or bf16");
    std::memcpy(to, from, n * sizeof(float));
  }
}

// One value, for the plain forms.
inline double value_at(const void* base, DType dtype, size_t index) {
  float value = 0;
  bf16 half;
  if (dtype == DType::kBf16) {
    std::memcpy(&half, element(base, dtype, index), sizeof half);
    value = to_float(half);
  } else {
    std::memcpy(&value, element(base, dtype, index), sizeof value);
  }
  return static_cast<double>(value);
}

// Value of weight [row, column] of a matrix [.., k], scaled as `dot` scales it.
inline double weight_at(const void* w, DType dtype, const float* scales, size_t k, size_t row,
                        size_t column) {
  const size_t index = row * k + column;
  if (!is_quantized(dtype)) return value_at(w, dtype, index);
  const uint8_t bits = static_cast<const uint8_t*>(w)[index];
  const size_t row_scales = (k + kScaleBlock - 1) / kScaleBlock;
  const float value = dtype == DType::kI8
                          ? static_cast<float>(static_cast<int8_t>(bits)) * scales[row]
                          : from_e4m3(bits) * scales[row / kScaleBlock * row_scales +
                                                     column / kScaleBlock];
  return static_cast<double>(value);
}

// Row stride for a block that `dot` will read. Inner blocks of 8 rows must not meet in the same
// sets of a first-level cache (4,096 bytes apart), which strides like 2,048 values would do.
constexpr size_t padded_stride(size_t k) {
  return k <= kDotInner ? k : k + (1024 + 528 - k % 1024) % 1024;
}

// y = w * x / sqrt(mean(x^2) + eps); y may be x.
inline void rms_norm_row(const float* x, const float* w, size_t n, float eps, float* y,
                         DotScratch& scratch) {
  float squares = 0;
  simd().dot(DotBlock{x, n, 1, x, DType::kF32, n, 1, n, &squares, 1}, scratch);
  const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  for (size_t i = 0; i < n; ++i) y[i] = x[i] * inverse * w[i];
}

// Parts of one worker's scratch, each aligned to 64 bytes.
class ScratchParts {
 public:
  static constexpr size_t room(size_t bytes) { return (bytes + 63) / 64 * 64; }
  template <typename T>
  static constexpr size_t room_for(size_t count) {
    return room(count * sizeof(T));
  }

  ScratchParts(CpuTeam& team, size_t bytes) : next_(static_cast<std::byte*>(team.scratch(bytes))) {
    end_ = next_ + bytes;
  }
  template <typename T>
  T* take(size_t count) {
    T* part = reinterpret_cast<T*>(next_);
    next_ += room_for<T>(count);
    EMBER_CHECK(next_ <= end_, "an operation asked for less scratch than it uses");
    return part;
  }

 private:
  std::byte* next_;
  std::byte* end_;
};

}  // namespace ember
