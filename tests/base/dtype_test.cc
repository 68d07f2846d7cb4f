// DType: rounding to bf16 against a definition in double, and the sizes that stored formats rely
// on.
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/prng.h"

namespace ember {
namespace {

// Nearest of the two bf16 neighbours, ties to the one whose last bit is 0.
uint16_t rounded_by_distance(float value) {
  const auto below = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  const auto above = static_cast<uint16_t>(below + 1);
  const double low = to_float(bf16{below});
  // Past the largest finite bf16 the neighbour is 2^128, which decides the tie like any other.
  const double high = std::isinf(to_float(bf16{above})) ? std::copysign(0x1p128, low)
                                                        : double{to_float(bf16{above})};
  const double to_low = std::abs(double{value} - low);
  const double to_high = std::abs(double{value} - high);
  if (to_low != to_high) return to_low < to_high ? below : above;
  return (below & 1) == 0 ? below : above;
}

TEST(Bf16Test, RoundsToNearestAndTiesToEven) {
  Prng random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    auto bits = static_cast<uint32_t>(random());
    if (i % 4 == 0) bits = (bits & 0xffff0000u) | 0x8000u;  // ties
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(to_bf16(value).bits, rounded_by_distance(value)) << std::hex << bits;
  }
}

TEST(Bf16Test, EveryBf16SurvivesTheWayThroughFp32) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const bf16 value{static_cast<uint16_t>(bits)};
    if (std::isnan(to_float(value))) {
      ASSERT_TRUE(std::isnan(to_float(to_bf16(to_float(value)))));
    } else {
      ASSERT_EQ(to_bf16(to_float(value)), value);
    }
  }
}

TEST(Bf16Test, EdgesKeepTheirMeaning) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(to_bf16(infinity)), infinity);
  EXPECT_EQ(to_float(to_bf16(-infinity)), -infinity);
  EXPECT_EQ(to_float(to_bf16(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(to_bf16(-0.0f).bits, 0x8000);
  // A NaN whose only set bits are those that rounding drops must not become infinity.
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(DTypeTest, StoredNumbersSizesAndNamesAreFixed) {
  struct Row {
    DType dtype;
    int number;
    size_t bytes;
    std::string_view name;
  };
  const Row rows[] = {{DType::kF32, 1, 4, "fp32"},  {DType::kBf16, 2, 2, "bf16"},
                      {DType::kF16, 3, 2, "fp16"},  {DType::kF8E4M3, 4, 1, "fp8_e4m3"},
                      {DType::kI32, 5, 4, "int32"}, {DType::kI64, 6, 8, "int64"},
                      {DType::kU8, 7, 1, "uint8"}};
  for (const Row& row : rows) {
    EXPECT_EQ(static_cast<int>(row.dtype), row.number);
    EXPECT_EQ(dtype_bytes(row.dtype), row.bytes);
    EXPECT_EQ(dtype_name(row.dtype), row.name);
  }
}

TEST(DTypeTest, AnUnknownNumberHasNoSize) {
  EXPECT_EQ(dtype_bytes(DType{99}), 0u);
  EXPECT_EQ(dtype_name(DType{99}), "unknown");
}

}  // namespace
}  // namespace ember
