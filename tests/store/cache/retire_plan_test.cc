// Which epoch goes, and with which of its blocks, against evicting in order until one is worth it.
#include "store/cache/retire_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

constexpr uint64_t kBlock = 10;

EvictionOrder used(uint64_t at) { return {EvictionRank::kHeld, at}; }

EpochView epoch_of(std::vector<std::optional<EvictionOrder>> live, uint64_t blocks) {
  EpochView view;
  view.bytes = blocks * kBlock;
  view.live_bytes = live.size() * kBlock;
  view.sample = std::move(live);
  return view;
}

std::vector<EpochBlock> blocks_of(const EpochView& view) {
  std::vector<EpochBlock> blocks;
  for (const auto& order : view.sample) blocks.push_back({kBlock, order});
  return blocks;
}

// What the plan gives up, where all of it can go.
std::vector<EvictionOrder> given_up(const EpochView& epoch,
                                    const std::optional<EvictionOrder>& cold) {
  const std::vector<EpochBlock> blocks = blocks_of(epoch);
  const GiveUp plan = plan_give_up(blocks, epoch.bytes, cold);
  std::vector<EvictionOrder> orders;
  for (size_t i = 0; i < plan.cold || i * kBlock < plan.bytes; ++i) {
    orders.push_back(blocks[plan.order.at(i)].order.value());
  }
  return orders;
}

TEST(RetirePlanTest, OfEpochsThatAreDeadEnoughTheDeadestGoes) {
  const std::vector<EpochView> epochs = {epoch_of({used(1), used(2), used(3)}, 3),
                                         epoch_of({used(4), used(90)}, 10),
                                         epoch_of({used(91)}, 10), epoch_of({used(5)}, 10)};
  EXPECT_EQ(choose_epoch(epochs)->index, 2u);
  EXPECT_TRUE(given_up(epochs[2], std::nullopt).empty());
}

TEST(RetirePlanTest, WhatIsColdIsNotPutAgainFromADeadEpochEither) {
  const EpochView epoch = epoch_of({used(1), used(90)}, 10);
  EXPECT_EQ(given_up(epoch, used(7)), (std::vector<EvictionOrder>{used(1)}));
}

TEST(RetirePlanTest, OldestFirstPutsNothingAgain) {
  std::vector<EpochView> epochs;
  for (uint64_t e = 0; e < 16; ++e) {
    epochs.push_back(epoch_of({used(4 * e), used(4 * e + 1), used(4 * e + 2), used(4 * e + 3)}, 4));
  }
  const std::optional<RetireChoice> choice = choose_epoch(epochs);
  EXPECT_EQ(choice->index, 0u);
  EXPECT_EQ(choice->cold, used(7)) << "an eighth of all";
  EXPECT_EQ(given_up(epochs[0], choice->cold).size(), 4u);
}

TEST(RetirePlanTest, RanksGoBeforeTimes) {
  const EvictionOrder unheld{EvictionRank::kUnheld, 70};
  const std::vector<EpochView> epochs = {epoch_of({used(1), used(2)}, 2),
                                         epoch_of({unheld, unheld}, 2)};
  EXPECT_EQ(choose_epoch(epochs)->index, 1u);
}

TEST(RetirePlanTest, WhatMayNotLeaveIsNeverGivenUp) {
  const std::vector<EpochView> epochs = {epoch_of({std::nullopt, std::nullopt, used(1)}, 3)};
  EXPECT_FALSE(choose_epoch(epochs).has_value()) << "two of three may not go";
  const GiveUp plan = plan_give_up(blocks_of(epochs[0]), epochs[0].bytes, used(9));
  EXPECT_EQ(plan.order, (std::vector<size_t>{2}));
  EXPECT_EQ(plan.cold, 1u);
}

TEST(RetirePlanTest, NoEpochsAreNoChoice) {
  EXPECT_FALSE(choose_epoch({}).has_value());
  EXPECT_FALSE(choose_epoch(std::vector<EpochView>(1, epoch_of({}, 0))).has_value() &&
               plan_give_up({}, 0, std::nullopt).bytes > 0);
  EXPECT_EQ(plan_give_up({}, 100, used(5)).bytes, 0u);
}

// The plain way: blocks go one by one, the coldest first, until some epoch is dead enough; and
// then, of that one, what is among the first eighth of all.
struct PlainWay {
  size_t epoch = 0;
  std::vector<EvictionOrder> given_up;  // of that epoch
};

PlainWay evict_in_order(const std::vector<EpochView>& epochs) {
  std::vector<std::pair<EvictionOrder, size_t>> blocks;
  for (size_t e = 0; e < epochs.size(); ++e) {
    for (const auto& order : epochs[e].sample) blocks.emplace_back(*order, e);
  }
  std::sort(blocks.begin(), blocks.end());
  std::vector<PlainWay> ways(epochs.size());
  const auto enough = [&](size_t e) {
    const uint64_t live = epochs[e].live_bytes - ways[e].given_up.size() * kBlock;
    return 10 * live <= 3 * epochs[e].bytes;
  };
  size_t gone = 0;
  for (; gone < blocks.size(); ++gone) {
    const auto [order, e] = blocks[gone];
    ways[e].epoch = e;
    ways[e].given_up.push_back(order);
    if (enough(e)) break;
  }
  PlainWay way = ways[blocks[gone].second];
  for (++gone; gone < blocks.size() / 8; ++gone) {
    if (blocks[gone].second == way.epoch) way.given_up.push_back(blocks[gone].first);
  }
  return way;
}

TEST(RetirePlanTest, FindsTheEpochThatEvictingInOrderWouldFind) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    std::vector<EpochView> epochs(1 + prng.below(12));
    std::vector<uint64_t> times(epochs.size() * 20);
    for (size_t i = 0; i < times.size(); ++i) times[i] = i + 1;
    for (size_t i = times.size(); i > 1; --i) std::swap(times[i - 1], times[prng.below(i)]);
    for (size_t e = 0; e < epochs.size(); ++e) {
      std::vector<std::optional<EvictionOrder>> live;
      const size_t count = 7 + prng.below(14);  // of 20: more than may be live
      for (size_t i = 0; i < count; ++i) {
        live.push_back(EvictionOrder{prng.below(3) == 0 ? EvictionRank::kUnheld
                                                        : EvictionRank::kHeld,
                                     times[e * 20 + i]});
      }
      epochs[e] = epoch_of(std::move(live), 20);
    }
    const PlainWay plain = evict_in_order(epochs);
    const std::optional<RetireChoice> choice = choose_epoch(epochs);
    ASSERT_TRUE(choice.has_value());
    ASSERT_EQ(choice->index, plain.epoch) << "seed " << seed;
    EXPECT_EQ(given_up(epochs[choice->index], choice->cold), plain.given_up) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ember
