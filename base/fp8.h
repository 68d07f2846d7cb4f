// fp8: the two eight-bit floats of the model family, e4m3 (values) and e8m0 (powers of two), and
// fp32.
//
// Journey    none; weights and cached rows are stored in them
// Invariant  e4m3 has no infinity: what is too large becomes the largest value, +-448
// Source     the OCP 8-bit floating point specification (e4m3, "fn") and OCP microscaling (e8m0)
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace ember {

inline constexpr float kE4m3Largest = 448.0f;

constexpr float from_e4m3(uint8_t bits) {
  const uint32_t sign = (bits & 0x80u) << 24;
  const uint32_t exponent = (bits >> 3) & 0xfu;
  const uint32_t mantissa = bits & 7u;
  if ((bits & 0x7fu) == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (exponent == 0) {
    const float size = static_cast<float>(mantissa) / 512.0f;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | ((exponent + 120u) << 23) | (mantissa << 20));
}

// Rounds to nearest, ties to even, and saturates; a NaN stays a NaN.
constexpr uint8_t to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  const uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  const float magnitude = std::bit_cast<float>(size);
  if (magnitude >= kE4m3Largest) return static_cast<uint8_t>(sign | 0x7eu);
  if (magnitude < 0.015625f) {
    // Below the smallest normal value the steps are 2^-9: adding 2^14 rounds to them.
    const uint32_t rounded = std::bit_cast<uint32_t>(magnitude + 16384.0f) & 0xfu;
    return static_cast<uint8_t>(sign | rounded);
  }
  const uint32_t even = size + 0x7ffffu + ((size >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((even >> 20) - (120u << 3)));
}

constexpr float from_e8m0(uint8_t bits) {
  if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
  if (bits == 0) return std::bit_cast<float>(0x00400000u);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 23);
}

// The smallest power of two that is not below `value`, a positive normal number.
constexpr float power_of_two_from(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(((bits + 0x7fffffu) >> 23) << 23);
}

}  // namespace ember
