// The same equalities on a random model of DeepSeek-V2-Lite's dimensions: 576-value rows, no
// q_lora, several layer groups that each hold one layer.
#include "tests/journey/boundary.h"
#include "tests/support/temp_folder.h"
#include "tools/make_random_model.h"

namespace ember {
namespace {

TEST(V2LiteShapeTest, RestoredBitForBitAroundABoundaryAndFromEveryTier) {
  const TempFolder folder;
  auto config = load_model_config(std::string(EMBER_SOURCE_DIR) + "/configs/v2_lite_two_layers");
  ASSERT_TRUE(config.ok()) << config.error().message;
  config.value().routed_experts = 6;
  const Status made = make_random_model(config.value(), /*seed=*/3, DType::kBf16,
                                        folder / "model", RandomDraw::kShared);
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (AttentionForm form : {AttentionForm::kAbsorb, AttentionForm::kNaive}) {
    Rig rig({.model_path = folder / "model",
             .store_path = folder / (form == AttentionForm::kAbsorb ? "absorb" : "naive"),
             .attention = form,
             .layers_per_group = 1,
             .context_tokens = 160});
    uint64_t seed = 300;
    const std::vector<std::vector<Tier>> losses = {
        {}, {Tier::kDevice}, {Tier::kDevice, Tier::kHost}};
    for (const auto& tiers : losses) expect_exact_after_loss(rig, 65, 3, tiers, ++seed);
    for (size_t length : {31u, 63u, 64u, 127u}) {
      expect_exact_after_loss(rig, length, 2, losses.back(), ++seed);
    }
  }
}

}  // namespace
}  // namespace ember
