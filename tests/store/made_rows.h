// Made rows: bf16 rows of channels that differ in size, and plain noise, from a seed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/prng.h"

namespace ember {

// `rows` rows of Gaussian values; each channel has its own size.
inline std::vector<std::byte> made_rows(Prng& prng, size_t channels, size_t rows) {
  const auto normal = [&prng] {
    const double radius = std::sqrt(-2 * std::log(1 - prng.uniform()));
    return radius * std::cos(6.283185307 * prng.uniform());
  };
  std::vector<double> sizes(channels);
  for (double& size : sizes) size = std::exp(0.8 * normal());
  std::vector<std::byte> raw(2 * channels * rows);
  for (size_t i = 0; i < channels * rows; ++i) {
    const bf16 value = to_bf16(static_cast<float>(sizes[i % channels] * normal()));
    std::memcpy(raw.data() + 2 * i, &value, 2);
  }
  return raw;
}

inline std::vector<std::byte> random_bytes(Prng& prng, size_t size) {
  std::vector<std::byte> raw(size);
  for (std::byte& b : raw) b = static_cast<std::byte>(prng());
  return raw;
}

}  // namespace ember
