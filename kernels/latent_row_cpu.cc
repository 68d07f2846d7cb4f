// Latent row: packing and reading of one row.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/fp8.h"
#include "kernels/latent_row.h"
#include "kernels/row_math.h"

namespace ember {
namespace {

constexpr float kLeastLargest = 1e-4f;

size_t scale_count(size_t latent_dim) { return (latent_dim + kScaleBlock - 1) / kScaleBlock; }

// Where the RoPE key of an fp8 row begins.
size_t rope_offset(size_t latent_dim) {
  return latent_dim + scale_count(latent_dim) * sizeof(float);
}

void store_fp8_row(const float* row, size_t latent_dim, size_t rope_dim, std::byte* to) {
  for (size_t b = 0; b < scale_count(latent_dim); ++b) {
    const size_t first = b * kScaleBlock;
    const size_t last = std::min(first + kScaleBlock, latent_dim);
    float most = kLeastLargest;
    for (size_t i = first; i < last; ++i) most = std::max(most, std::abs(row[i]));
    const float scale = most / kE4m3Largest;
    for (size_t i = first; i < last; ++i) to[i] = std::byte{to_e4m3(row[i] / scale)};
    std::memcpy(to + latent_dim + b * sizeof scale, &scale, sizeof scale);
  }
  simd().narrow(row + latent_dim, to + rope_offset(latent_dim), rope_dim);
}

void load_fp8_row(const std::byte* from, size_t latent_dim, size_t rope_dim, float* row) {
  for (size_t b = 0; b < scale_count(latent_dim); ++b) {
    const size_t first = b * kScaleBlock;
    const auto scale = load_unaligned<float>(from + latent_dim + b * sizeof(float));
    simd().widen_e4m3(from + first, scale, row + first, std::min(kScaleBlock, latent_dim - first));
  }
  simd().widen(from + rope_offset(latent_dim), row + latent_dim, rope_dim);
}

}  // namespace

size_t latent_row_bytes(DType dtype, size_t latent_dim, size_t rope_dim) {
  if (dtype == DType::kF8E4M3) return rope_offset(latent_dim) + rope_dim * sizeof(bf16);
  return (latent_dim + rope_dim) * dtype_bytes(dtype);
}

void store_latent_row(const float* row, DType dtype, size_t latent_dim, size_t rope_dim,
                      std::byte* to) {
  if (dtype == DType::kF8E4M3) {
    store_fp8_row(row, latent_dim, rope_dim, to);
  } else {
    store_row(row, dtype, latent_dim + rope_dim, to);
  }
}

void load_latent_row(const std::byte* from, DType dtype, size_t latent_dim, size_t rope_dim,
                     float* row) {
  if (dtype == DType::kF8E4M3) {
    load_fp8_row(from, latent_dim, rope_dim, row);
  } else {
    load_row(from, dtype, latent_dim + rope_dim, row);
  }
}

double latent_row_value(const std::byte* row, DType dtype, size_t latent_dim, size_t index) {
  if (dtype != DType::kF8E4M3) return value_at(row, dtype, index);
  if (index >= latent_dim) {
    return value_at(row + rope_offset(latent_dim), DType::kBf16, index - latent_dim);
  }
  const auto scale = load_unaligned<float>(row + latent_dim + index / kScaleBlock * sizeof(float));
  return static_cast<double>(from_e4m3(load_unaligned<uint8_t>(row + index)) * scale);
}

}  // namespace ember
