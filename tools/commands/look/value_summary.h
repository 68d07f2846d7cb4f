// Value summary: how the values of stored rows are spread: range, odd values, entropy by plane and
// a histogram by powers of two.
//
// Journey    a group's raw bytes -> [value_summary] -> show
// Invariant  every value is counted once, in exactly one of finite, NaN and infinite
// Threads    any; pure
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/dtype.h"

namespace ember {

class ValueSummary {
 public:
  // Values of `dtype`, one after the other: bf16, fp16 and fp32 as numbers; of anything else the
  // bytes alone.
  void add(ConstBytes values, DType dtype);

  uint64_t count() const { return count_; }
  uint64_t nan() const { return nan_; }
  uint64_t infinite() const { return infinite_; }
  uint64_t zeros() const { return zeros_; }
  uint64_t subnormal() const { return subnormal_; }
  double least() const { return least_; }
  double most() const { return most_; }
  double mean() const;
  double root_mean_square() const;
  // Bits for each value that an order-0 code of the plane would take.
  double exponent_entropy() const { return entropy(exponents_); }
  double mantissa_entropy() const { return entropy(mantissas_); }  // sign and upper bits, a byte

  // Sizes from 2^first on; a bin for each power of two. What is below, zeros among them, is in the
  // first bin, what is above in the last.
  static constexpr int kFirstPower = -12;
  static constexpr size_t kBins = 20;
  const std::array<uint64_t, kBins>& bins() const { return bins_; }

 private:
  static double entropy(const std::array<uint64_t, 256>& counts);
  void add(float value, uint32_t bits);

  uint64_t count_ = 0;
  uint64_t nan_ = 0;
  uint64_t infinite_ = 0;
  uint64_t zeros_ = 0;
  uint64_t subnormal_ = 0;
  double least_ = 0;
  double most_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  std::array<uint64_t, kBins> bins_{};
  std::array<uint64_t, 256> exponents_{};
  std::array<uint64_t, 256> mantissas_{};
};

}  // namespace ember
