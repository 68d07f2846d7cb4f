// Memory plan: the published bytes of weights and cache, and what fits.
#include "engine/model/memory_plan.h"

#include <gtest/gtest.h>

namespace ember::testing {
namespace {

ModelConfig read(const std::string& name) {
  return std::move(load_model_config_file(EMBER_SOURCE_DIR "/configs/models/" + name + ".json"))
      .value();
}

TEST(MemoryPlanTest, TokensTakeThePublishedBytes) {
  const TokenBytes v3 = token_bytes(read("config_671B"));
  EXPECT_EQ(v3.bf16, 70'272u);
  EXPECT_EQ(v3.fp8, 40'016u);
  EXPECT_EQ(v3.expanded, 61u * 81'920);
  EXPECT_EQ(token_bytes(read("config_16B")).bf16, 31'104u);
  EXPECT_EQ(token_bytes(read("glm_4_7_flash")).bf16, 54'144u);
  EXPECT_EQ(token_bytes(read("kimi_k2")).expanded, 61u * 40'960);
}

TEST(MemoryPlanTest, WeightsTakeTheBytesOfTheirPrecision) {
  const ModelConfig lite = read("config_16B");
  const WeightBytes bf16 = weight_bytes(lite, WeightPrecision::kBf16);
  EXPECT_EQ(bf16.stored, 15'706'484'224u * 2);
  EXPECT_EQ(bf16.memory - bf16.stored, 27u * 16 * 512 * 128 * 2);
  // V2-Lite in int8 fits 24 GiB with room for its cache.
  EXPECT_LT(weight_bytes(lite, WeightPrecision::kInt8).memory, uint64_t{17} << 30);
  // kv_b alone is larger in memory than in an fp8 file.
  const WeightBytes fp8 = weight_bytes(read("config_671B"), WeightPrecision::kFp8);
  EXPECT_NEAR(static_cast<double>(fp8.stored), 671.03e9 + 2 * 129280.0 * 7168, 2e9);
  EXPECT_GT(fp8.memory, fp8.stored);
}

TEST(MemoryPlanTest, WholeBlocksFitBesideTheWeights) {
  EXPECT_EQ(fitting_sequences(
                {.memory_bytes = 1000, .weight_bytes = 1000, .token_bytes = 1, .tokens = 1}),
            0u);
  EXPECT_EQ(
      fitting_sequences(
          {.memory_bytes = 1000 + 6399, .weight_bytes = 1000, .token_bytes = 100, .tokens = 1}),
      0u);
  EXPECT_EQ(
      fitting_sequences(
          {.memory_bytes = 1000 + 25'600, .weight_bytes = 1000, .token_bytes = 100, .tokens = 65}),
      2u);
}

}  // namespace
}  // namespace ember::testing
