// Weight conversion: plain loops; run once, at load.
#include "engine/model/weight_convert.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"

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
    default:
      break;
  }
  EMBER_CHECK(false, "weights are bf16, fp16 or fp32");
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

}  // namespace

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
    const float value = load_value(source, from_dtype, i);
    if (to_dtype == DType::kF32) {
      std::memcpy(target + i * sizeof value, &value, sizeof value);
    } else {
      const bf16 rounded = to_bf16(value);
      std::memcpy(target + i * sizeof rounded, &rounded, sizeof rounded);
    }
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
