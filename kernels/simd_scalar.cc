// Simd, scalar level: 8 lanes as an array; slow, portable, and the same bits as every other level.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/fp8.h"
#include "kernels/simd_lanes.h"

namespace ember {
namespace {

struct ScalarLanes {
  static constexpr size_t kLanes = 8;
  static constexpr size_t kValueVectors = 3;
  float v[8];

  template <class F>
  static ScalarLanes each(F f) {
    ScalarLanes r;
    for (int i = 0; i < 8; ++i) r.v[i] = f(i);
    return r;
  }

  static ScalarLanes zero() { return broadcast(0.0f); }
  static ScalarLanes broadcast(float x) {
    return each([&](int) { return x; });
  }
  static ScalarLanes load(const void* from) {
    ScalarLanes r;
    std::memcpy(r.v, from, sizeof r.v);
    return r;
  }
  static ScalarLanes load_part(const void* from, size_t n) {
    ScalarLanes r = zero();
    std::memcpy(r.v, from, n * sizeof(float));
    return r;
  }
  static ScalarLanes load_bf16(const void* from) { return load_bf16_part(from, 8); }
  static ScalarLanes load_bf16_part(const void* from, size_t n) {
    bf16 halves[8] = {};
    std::memcpy(halves, from, n * sizeof(bf16));
    return each([&](int i) { return to_float(halves[i]); });
  }
  static ScalarLanes load_e4m3(const void* from) { return load_e4m3_part(from, 8); }
  static ScalarLanes load_e4m3_part(const void* from, size_t n) {
    uint8_t bytes[8] = {};
    std::memcpy(bytes, from, n);
    return each([&](int i) { return from_e4m3(bytes[i]); });
  }
  static ScalarLanes load_i8(const void* from) { return load_i8_part(from, 8); }
  static ScalarLanes load_i8_part(const void* from, size_t n) {
    int8_t bytes[8] = {};
    std::memcpy(bytes, from, n);
    return each([&](int i) { return static_cast<float>(bytes[i]); });
  }
  void store(float* to) const { std::memcpy(to, v, sizeof v); }
  void store_part(float* to, size_t n) const { std::memcpy(to, v, n * sizeof(float)); }

  using L = const ScalarLanes&;
  static ScalarLanes fma(L a, L b, L c) {
    return each([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  static ScalarLanes add(L a, L b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static ScalarLanes sub(L a, L b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static ScalarLanes mul(L a, L b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static ScalarLanes div(L a, L b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  // The second operand where one is not a number, as x86 does.
  static ScalarLanes max(L a, L b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static ScalarLanes min(L a, L b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }

  static float sum(L a) {
    return ((a.v[0] + a.v[1]) + (a.v[2] + a.v[3])) + ((a.v[4] + a.v[5]) + (a.v[6] + a.v[7]));
  }
  static void sum4(L a, L b, L c, L d, float* out) {
    out[0] = sum(a);
    out[1] = sum(b);
    out[2] = sum(c);
    out[3] = sum(d);
  }

  // p * 2^n, where `shifted` = 1.5 * 2^23 + n.
  static ScalarLanes times_power_of_two(L p, L shifted) {
    return each([&](int i) {
      const uint32_t bits = std::bit_cast<uint32_t>(shifted.v[i]) - 0x4b400000u;
      const auto n = static_cast<int32_t>(bits);
      const auto half = static_cast<uint32_t>(n >> 1);
      const float first = std::bit_cast<float>((half + 127u) << 23);
      const float second = std::bit_cast<float>((bits - half + 127u) << 23);
      return p.v[i] * first * second;
    });
  }

  static void widen(const void* from, float* to, size_t n) {
    const char* at = static_cast<const char*>(from);
    for (size_t i = 0; i < n; ++i) {
      bf16 half;
      std::memcpy(&half, at + i * sizeof half, sizeof half);
      to[i] = to_float(half);
    }
  }
  static void narrow(const float* from, void* to, size_t n) {
    char* at = static_cast<char*>(to);
    for (size_t i = 0; i < n; ++i) {
      const bf16 half = to_bf16(from[i]);
      std::memcpy(at + i * sizeof half, &half, sizeof half);
    }
  }
};

}  // namespace

const Simd& scalar_simd() {
  static constexpr Simd kLevel = lanes::make_simd<ScalarLanes>("cpu-scalar");
  return kLevel;
}

}  // namespace ember
