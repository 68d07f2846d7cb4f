// Counting values: one pass, doubles for the sums.
#include "tools/commands/look/value_summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ember {

void ValueSummary::add(ConstBytes values, DType dtype) {
  const size_t bytes = dtype_bytes(dtype);
  for (size_t at = 0; at + bytes <= values.size(); at += bytes) {
    if (dtype == DType::kBf16) {
      const auto bits = static_cast<uint32_t>(load_unaligned<uint16_t>(values.data() + at)) << 16;
      add(std::bit_cast<float>(bits), bits);
    } else if (dtype == DType::kF32) {
      const auto bits = load_unaligned<uint32_t>(values.data() + at);
      add(std::bit_cast<float>(bits), bits);
    }
  }
}

void ValueSummary::add(float value, uint32_t bits) {
  ++count_;
  ++exponents_[bits >> 23 & 0xff];
  ++mantissas_[(bits >> 16 & 0x7f) | (bits >> 24 & 0x80)];
  if (std::isnan(value)) {
    ++nan_;
    return;
  }
  if (std::isinf(value)) {
    ++infinite_;
    return;
  }
  const uint64_t finite = count_ - nan_ - infinite_;
  least_ = finite == 1 ? value : std::min(least_, static_cast<double>(value));
  most_ = finite == 1 ? value : std::max(most_, static_cast<double>(value));
  sum_ += value;
  squares_ += static_cast<double>(value) * static_cast<double>(value);
  if (value == 0) ++zeros_;
  if (std::fpclassify(value) == FP_SUBNORMAL) ++subnormal_;
  const int power = value == 0 ? kFirstPower : std::ilogb(value);
  const int bin = std::clamp(power - kFirstPower, 0, static_cast<int>(kBins) - 1);
  ++bins_[static_cast<size_t>(bin)];
}

double ValueSummary::mean() const {
  const uint64_t finite = count_ - nan_ - infinite_;
  return finite == 0 ? 0 : sum_ / static_cast<double>(finite);
}

double ValueSummary::root_mean_square() const {
  const uint64_t finite = count_ - nan_ - infinite_;
  return finite == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(finite));
}

double ValueSummary::entropy(const std::array<uint64_t, 256>& counts) {
  double total = 0;
  for (const uint64_t count : counts) total += static_cast<double>(count);
  double bits = 0;
  for (const uint64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / total;
    bits -= share * std::log2(share);
  }
  return bits;
}

}  // namespace ember
