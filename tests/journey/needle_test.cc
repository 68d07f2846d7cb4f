// Facts in a long handbook are answered as if the cache had never been lost.
#include <gtest/gtest.h>

#include "tests/support/needle.h"
#include "tests/support/needle_context.h"
#include "tests/support/rig.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

TEST(NeedleContextTest, FactsStandOnceAtTheirDepthsAndTheLengthIsKept) {
  const auto book = FactBook::load(demo_model_path());
  ASSERT_TRUE(book.ok()) << book.error().message;
  const auto count = [](std::string_view line) { return line.size() / 4 + 1; };
  for (const size_t tokens : {400u, 1000u, 4000u}) {
    const auto context = plant_needles(*book, tokens, 10, tokens, count);
    ASSERT_TRUE(context.ok()) << context.error().message;
    EXPECT_LE(context->text.size() / 4, tokens);
    EXPECT_GE(context->text.size() / 4, tokens * 8 / 10);
    ASSERT_EQ(context->facts.size(), 10u);
    size_t last = 0;
    for (const PlantedFact& fact : context->facts) {
      const size_t at = context->text.find(fact.sentence);
      ASSERT_NE(at, std::string::npos) << fact.sentence;
      EXPECT_EQ(context->text.find(fact.sentence, at + 1), std::string::npos) << fact.sentence;
      EXPECT_GE(at, last);
      last = at;
    }
    EXPECT_EQ(context->text, plant_needles(*book, tokens, 10, tokens, count)->text);
  }
  EXPECT_FALSE(plant_needles(*book, 20, 10, 1, count).ok());
}

class NeedleTest : public testing::TestWithParam<DType> {};

TEST_P(NeedleTest, AnswersAfterARestoreFromEachTierAreThoseOfAnUninterruptedRun) {
  const TempFolder folder;
  NeedleOptions options;
  options.model_path = demo_model_path();
  options.store_path = folder / "store";
  options.cache_dtype = GetParam();
  options.lengths = {320, 640};
  options.depths = 4;
  const auto result = run_needle(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const NeedleCell total = result->total();
  EXPECT_EQ(total.asked, 8u);
  EXPECT_EQ(total.host_restored, total.asked);
  EXPECT_EQ(total.disk_restored, total.asked);
  EXPECT_EQ(total.host_differs, 0u);
  EXPECT_EQ(total.disk_differs, 0u);
  EXPECT_EQ(total.cold_asked, 2u);
  EXPECT_EQ(total.cold_differs, 0u);
  EXPECT_GE(total.right, 4u) << "the model answers most of such questions";
}

INSTANTIATE_TEST_SUITE_P(CacheDtypes, NeedleTest, testing::Values(DType::kBf16, DType::kF8E4M3),
                         [](const auto& dtype) {
                           return dtype.param == DType::kBf16 ? "bf16" : "fp8";
                         });

}  // namespace
}  // namespace ember
