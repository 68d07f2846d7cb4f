// Weight conversion: plain loops; run once, at load.
#include "engine/model/weight_convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fp8.h"
#include "kernels/simd.h"

namespace ember {
namespace {

float load_value(const std::byte* from, DType dtype, size_t index) {
  switch (dtype) {
    case DType::kF32:
      return load_unaligned<float>(from + index * 4);
    case DType::kBf16:
      return to_float(load_unaligned<bf16>(from + index * 2));
    case DType::kF16:
      return half_to_float(load_unaligned<uint16_t>(from + index * 2));
    case DType::kF8E4M3:
      return from_e4m3(load_unaligned<uint8_t>(from + index));
    case DType::kF8E8M0:
      return from_e8m0(load_unaligned<uint8_t>(from + index));
    case DType::kI8:
      return static_cast<float>(load_unaligned<int8_t>(from + index));
    default:
      break;
  }
  EMBER_CHECK(false, "weights are floats, or int8 with scales");
}

template <typename T>
void transpose(const KeyAbsorbShape& shape, const std::byte* kv_b, std::byte* out) {
  const size_t head_rows = shape.nope_dim + shape.value_dim;
  for (size_t h = 0; h < shape.heads; ++h) {
    for (size_t n = 0; n < shape.nope_dim; ++n) {
      const size_t row = (h * head_rows + n) * shape.latent_dim;
      for (size_t c = 0; c < shape.latent_dim; ++c) {
        const size_t to = (h * shape.latent_dim + c) * shape.nope_dim + n;
        std::memcpy(out + to * sizeof(T), kv_b + (row + c) * sizeof(T), sizeof(T));
      }
    }
  }
}

void store_value(float value, DType dtype, std::byte* to, size_t index) {
  if (dtype == DType::kF32) {
    std::memcpy(to + index * sizeof value, &value, sizeof value);
  } else {
    const bf16 rounded = to_bf16(value);
    std::memcpy(to + index * sizeof rounded, &rounded, sizeof rounded);
  }
}

}  // namespace

void widen_row(const Weight& weight, size_t row, float* to) {
  const size_t cols = weight.cols;
  const auto* from =
      static_cast<const std::byte*>(weight.data) + row * cols * dtype_bytes(weight.dtype);
  if (weight.dtype == DType::kBf16) return simd().widen(from, to, cols);
  if (weight.dtype == DType::kF8E4M3) {
    const float* scales =
        weight.scales + row / kScaleBlock * ((cols + kScaleBlock - 1) / kScaleBlock);
    for (size_t i = 0; i < cols; i += kScaleBlock) {
      simd().widen_e4m3(from + i, scales[i / kScaleBlock], to + i, std::min(kScaleBlock, cols - i));
    }
    return;
  }
  const float scale = weight.dtype == DType::kI8 ? weight.scales[row] : 1.0f;
  for (size_t i = 0; i < cols; ++i) to[i] = load_value(from, weight.dtype, i) * scale;
}

void widen_matrix(const Weight& weight, DType dtype, void* out) {
  auto* to = static_cast<std::byte*>(out);
  std::vector<float> row(weight.cols);
  for (size_t r = 0; r < weight.rows; ++r) {
    widen_row(weight, r, row.data());
    for (size_t i = 0; i < weight.cols; ++i) {
      store_value(row[i], dtype, to, r * weight.cols + i);
    }
  }
}

bool quantize_rows(const Weight& weight, int8_t* out, float* scales) {
  std::vector<float> row(weight.cols);
  for (size_t r = 0; r < weight.rows; ++r) {
    widen_row(weight, r, row.data());
    float most = 0;
    bool finite = true;
    for (const float value : row) {
      most = std::max(most, std::abs(value));
      finite = finite && std::isfinite(value);
    }
    if (!finite) return false;
    scales[r] = most > 0 ? most / 127.0f : 1.0f;
    for (size_t i = 0; i < weight.cols; ++i) {
      out[r * weight.cols + i] =
          static_cast<int8_t>(std::clamp(std::nearbyint(row[i] / scales[r]), -127.0f, 127.0f));
    }
  }
  return true;
}

float half_to_float(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0x1f) {
    const uint32_t special = 0x7f800000u | (static_cast<uint32_t>(mantissa) << 13);
    return std::copysign(std::bit_cast<float>(special), sign);
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
}

void convert_values(const void* from, DType from_dtype, void* to, DType to_dtype, size_t count) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  if (from_dtype == to_dtype) {
    std::memcpy(target, source, count * dtype_bytes(to_dtype));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    store_value(load_value(source, from_dtype, i), to_dtype, target, i);
  }
}

void transpose_key_part(const KeyAbsorbShape& shape, const void* kv_b, DType dtype, void* out) {
  const auto* from = static_cast<const std::byte*>(kv_b);
  auto* to = static_cast<std::byte*>(out);
  if (dtype == DType::kF32) {
    transpose<float>(shape, from, to);
  } else {
    transpose<bf16>(shape, from, to);
  }
}

}  // namespace ember
