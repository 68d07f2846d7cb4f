// DType: the number formats of weights, activations and cached rows, and bf16 <-> fp32.
//
// Journey    none; names the values of every tensor and stream
// Invariant  the numeric values are stored in records and never change their meaning
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ember {

enum class DType : uint8_t {
  kF32 = 1,
  kBf16 = 2,
  kF16 = 3,
  kF8E4M3 = 4,
  kI32 = 5,
  kI64 = 6,
  kU8 = 7,
  kI8 = 8,
  kF8E8M0 = 9  // a power of two: the scales of some fp8 weights
};

constexpr size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBf16:
      return 2;
    case DType::kF16:
      return 2;
    case DType::kF8E4M3:
      return 1;
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 8;
    case DType::kU8:
    case DType::kI8:
    case DType::kF8E8M0:
      return 1;
  }
  return 0;
}

constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "fp16";
    case DType::kF8E4M3:
      return "fp8_e4m3";
    case DType::kI32:
      return "int32";
    case DType::kI64:
      return "int64";
    case DType::kU8:
      return "uint8";
    case DType::kI8:
      return "int8";
    case DType::kF8E8M0:
      return "fp8_e8m0";
  }
  return "unknown";
}

// The upper half of an fp32. Same size and bytes as a bf16 of any other program.
struct bf16 {
  uint16_t bits = 0;
  friend bool operator==(bf16, bf16) = default;
};
static_assert(sizeof(bf16) == 2);

constexpr float to_float(bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
constexpr float to_float(float value) { return value; }

// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr bf16 to_bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<uint16_t>((bits >> 16) | 0x40u)};
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return bf16{static_cast<uint16_t>(bits >> 16)};
}

}  // namespace ember
