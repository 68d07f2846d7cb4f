// Result: a value or an error, and the macros that hand errors on.
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace ember {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return {ErrorCode::kInvalidArgument, "odd: " + std::to_string(value)};
  return value / 2;
}

Result<int> quarter(int value) {
  EMBER_ASSIGN(const int once, half(value));
  EMBER_ASSIGN(const int twice, half(once));
  return twice;
}

Status must_be_even(int value) {
  EMBER_TRY(half(value));
  return {};
}

TEST(ResultTest, HoldsAValueOrAnError) {
  const Result<int> good = half(8);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 4);
  const Result<int> bad = half(7);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error().message, "odd: 7");
}

TEST(ResultTest, TheMacrosHandTheErrorOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "odd: 3");
  EXPECT_TRUE(must_be_even(2).ok());
  EXPECT_EQ(must_be_even(3).error().message, "odd: 3");
}

TEST(ResultTest, CarriesWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<std::string>> result = std::make_unique<std::string>("x");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, "x");
  const std::unique_ptr<std::string> taken = std::move(result).value();
  EXPECT_EQ(*taken, "x");
}

TEST(ResultTest, AnErrorTypeOfTheSameTextIsNoValue) {
  const Result<std::string> value = std::string("fine");
  EXPECT_EQ(value->size(), 4u);
  const Result<std::string> error = Error{ErrorCode::kIo, "fine"};
  EXPECT_FALSE(error.ok());
}

TEST(StatusTest, IsGoodByDefault) {
  const Status good;
  EXPECT_TRUE(good.ok());
  const Status bad(ErrorCode::kBusy, "held");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "held");
}

TEST(ResultDeathTest, TakingWhatIsNotThereAborts) {
  const Result<int> bad = half(1);
  EXPECT_DEATH(static_cast<void>(bad.value()), "value of a failed Result");
  const Result<int> good = half(2);
  EXPECT_DEATH(static_cast<void>(good.error()), "error of a good Result");
  const Status status;
  EXPECT_DEATH(static_cast<void>(status.error()), "error of a good Status");
}

TEST(ErrorCodeTest, NamesAreThoseOfTheReports) {
  EXPECT_EQ(error_code_name(ErrorCode::kInvalidArgument), "invalid argument");
  EXPECT_EQ(error_code_name(ErrorCode::kCorruption), "corruption");
  EXPECT_EQ(error_code_name(ErrorCode::kIo), "io");
  EXPECT_EQ(error_code_name(ErrorCode::kCapacity), "capacity");
  EXPECT_EQ(error_code_name(ErrorCode::kBusy), "busy");
  EXPECT_EQ(error_code_name(ErrorCode::kUnsupported), "unsupported");
  EXPECT_EQ(error_code_name(ErrorCode::kDevice), "device");
  EXPECT_EQ(error_code_name(ErrorCode::kCancelled), "cancelled");
}

}  // namespace
}  // namespace ember
