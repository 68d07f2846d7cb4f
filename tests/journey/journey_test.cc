// The journey of a latent, the specification of this project in one test: a block is computed,
// hashed, indexed, written to host memory and disk; the device and the host lose it; the store is
// closed and opened again; it is restored, read by attention, and everything after it is the same,
// bit for bit, as in the run that was never interrupted.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/support/rig.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

// Attention form, layers in a group (0: as many as make half a MiB), seed of a simulated device.
using Variant = std::tuple<AttentionForm, uint32_t, uint64_t>;

class JourneyTest : public testing::TestWithParam<Variant> {
 protected:
  RigOptions options(const std::string& store) const {
    const auto& [attention, layers_per_group, sim_seed] = GetParam();
    RigOptions options;
    options.model_path = demo_model_path();
    options.store_path = store;
    options.attention = attention;
    options.layers_per_group = layers_per_group;
    options.sim_seed = sim_seed;
    return options;
  }
};

TEST_P(JourneyTest, ALatentComesBackBitForBitAfterDeviceHostAndProcessAreLost) {
  const TempFolder folder;
  Rig rig(options(folder / "store"));
  const std::vector<TokenId> all = rig.random_tokens(170, /*seed=*/11);
  const std::vector<TokenId> yesterday(all.begin(), all.begin() + 150);

  // The run that is never interrupted: all tokens, computed here and now.
  const FeedResult uninterrupted = rig.feed_cold(all);
  EXPECT_EQ(uninterrupted.computed_tokens, all.size());

  // Yesterday: two full blocks and a tail of 22 tokens are computed, and become durable.
  const FeedResult written = rig.feed(yesterday);
  EXPECT_EQ(written.computed_tokens, yesterday.size());
  rig.sync();
  EXPECT_EQ(rig.cache().stats().durable_blocks, 2u);
  EXPECT_EQ(rig.cache().stats().tail_records, 1u);

  // The device loses them: they come from host memory. The host loses them too: from disk.
  rig.cache().drop_tier(Tier::kDevice);
  EXPECT_EQ(rig.feed(yesterday).latents, written.latents);
  rig.cache().drop_tier(Tier::kDevice);
  rig.cache().drop_tier(Tier::kHost);
  const FeedResult from_disk = rig.feed(yesterday);
  EXPECT_EQ(from_disk.report.restored_tokens[static_cast<size_t>(Tier::kDisk)], 149u);
  EXPECT_EQ(from_disk.computed_tokens, 1u) << "only the token that gives the first logits";
  EXPECT_EQ(from_disk.latents, written.latents);
  EXPECT_EQ(from_disk.last_logits, written.last_logits);

  // Today: another opening of the store. Its index is rebuilt from what is on disk.
  rig.close();
  rig.open();
  const FeedResult resumed = rig.feed(all);
  EXPECT_EQ(resumed.report.restored_tokens[static_cast<size_t>(Tier::kDisk)], 150u);
  EXPECT_EQ(resumed.computed_tokens, 20u);
  EXPECT_EQ(resumed.latents, uninterrupted.latents);
  EXPECT_EQ(resumed.last_logits, uninterrupted.last_logits);
  EXPECT_EQ(rig.cache().stats().stranded, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, JourneyTest,
    testing::Values(Variant{AttentionForm::kAbsorb, 0, 0}, Variant{AttentionForm::kAbsorb, 1, 0},
                    Variant{AttentionForm::kAbsorb, 4, 0}, Variant{AttentionForm::kNaive, 0, 0},
                    Variant{AttentionForm::kNaive, 1, 0}, Variant{AttentionForm::kAbsorb, 2, 5},
                    Variant{AttentionForm::kNaive, 1, 6}));

}  // namespace
}  // namespace ember
