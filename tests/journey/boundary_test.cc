// E0, E1 and E2 around block boundaries, for every tier, and for tails of chosen lengths.
#include "tests/journey/boundary.h"

#include "tests/support/temp_folder.h"

namespace ember {
namespace {

const std::vector<std::vector<Tier>> kLosses = {{}, {Tier::kDevice}, {Tier::kDevice, Tier::kHost}};

TEST(BoundaryTest, RestoredFromEveryTierAroundEveryBoundary) {
  const TempFolder folder;
  Rig rig({.model_path = tiny_model_path(), .store_path = folder / "store", .context_tokens = 256});
  uint64_t seed = 100;
  for (const auto& tiers : kLosses) {
    for (size_t boundary : {64u, 128u, 192u}) {
      for (size_t length : {boundary - 1, boundary, boundary + 1}) {
        expect_exact_after_loss(rig, length, 7, tiers, ++seed);
      }
    }
  }
}

TEST(BoundaryTest, TailsOfOneThirtyOneAndSixtyThreeTokens) {
  const TempFolder folder;
  Rig rig({.model_path = demo_model_path(), .store_path = folder / "store", .context_tokens = 256});
  uint64_t seed = 200;
  for (const auto& tiers : kLosses) {
    for (size_t tail : {1u, 31u, 63u}) expect_exact_after_loss(rig, 64 + tail, 5, tiers, ++seed);
  }
}

TEST(BoundaryTest, ChunksOfOneSixtyFourAndAllGiveTheSameBits) {
  for (AttentionForm form : {AttentionForm::kAbsorb, AttentionForm::kNaive}) {
    std::vector<FeedResult> results;
    for (size_t chunk : {size_t{1}, size_t{64}, size_t{200}}) {
      Rig rig({.model_path = demo_model_path(), .attention = form, .chunk_tokens = chunk});
      results.push_back(rig.feed_cold(rig.random_tokens(200, 7)));
    }
    for (const FeedResult& result : results) {
      EXPECT_EQ(result.latents, results[0].latents);
      EXPECT_EQ(result.last_logits, results[0].last_logits);
    }
  }
}

TEST(BoundaryTest, APrefixThatDivergesInsideABlockIsUsedDownToTheToken) {
  const TempFolder folder;
  Rig rig({.model_path = demo_model_path(), .store_path = folder / "store"});
  std::vector<TokenId> first = rig.random_tokens(200, 31);
  rig.feed(first);
  rig.sync();
  rig.cache().drop_tier(Tier::kDevice);
  rig.cache().drop_tier(Tier::kHost);
  std::vector<TokenId> second = first;
  second[150] = (second[150] + 1) % 1000;
  const FeedResult resumed = rig.feed(second);
  EXPECT_EQ(resumed.report.total(), 150u);
  const FeedResult cold = rig.feed_cold(second);
  EXPECT_EQ(resumed.latents, cold.latents);
  EXPECT_EQ(resumed.last_logits, cold.last_logits);
}

}  // namespace
}  // namespace ember
