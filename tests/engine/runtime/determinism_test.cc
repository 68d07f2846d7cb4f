// E2: however a prompt was cut, beside whom, on how many threads, from which tier, after which
// damage: the same stored bytes and the same draws. And E1 for the mode that chooses the form.
#include <algorithm>
#include <numeric>

#include "base/prng.h"
#include "tests/engine/runtime/sim_scheduler.h"

namespace ember::testing {
namespace {

constexpr size_t kContext = 512;
const std::vector<size_t> kLengths = {1, 63, 130, 257};

struct Answers {
  std::vector<std::vector<TokenId>> drawn;  // in the order of kLengths
  std::map<BlockHash, std::vector<std::string>> stored;
  friend bool operator==(const Answers&, const Answers&) = default;
};

SimSchedulerOptions variant(size_t chunk, int workers, AttentionMode mode) {
  SimSchedulerOptions options;
  options.sim_seed = 0;
  options.workers = workers;
  options.scheduler.chunk_tokens = chunk;
  options.scheduler.context_tokens = kContext;
  options.scheduler.attention = mode;
  return options;
}

Request request_of(size_t i) { return sim_request(kLengths[i], 70 + i, 9); }

// All together, submitted in the order that a seed draws; some join later than others.
Answers answers_of(const SimSchedulerOptions& options, uint64_t order_seed) {
  SimScheduler sim(options);
  std::vector<size_t> order(kLengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Prng prng(order_seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng.below(i)]);
  Answers answers;
  answers.drawn.resize(order.size());
  for (const size_t i : order) {
    Request request = request_of(i);
    request.on_done = [&answers, i](const Outcome& outcome) {
      EXPECT_TRUE(outcome.status.ok());
      answers.drawn[i] = outcome.token_ids;
    };
    sim.submit(std::move(request));
    for (uint64_t ticks = prng.below(4); ticks > 0; --ticks) sim.scheduler().tick(0);
  }
  sim.run_all();
  sim.sync();
  answers.stored = sim.stored();
  return answers;
}

// Each request alone.
Answers reference(AttentionMode mode) {
  SimScheduler sim(variant(kContext, 1, mode));
  Answers answers;
  for (size_t i = 0; i < kLengths.size(); ++i) {
    answers.drawn.push_back(sim.run(request_of(i)).token_ids);
  }
  sim.sync();
  answers.stored = sim.stored();
  return answers;
}

struct Cut {
  size_t chunk;
  int workers;
};

// Each chunk size on some number of threads, or on all: one reference stands for all of them.
std::vector<Cut> cuts() {
  if (!every_mix()) return {{1, 1}, {7, 2}, {64, 4}, {100, 1}, {256, 2}, {kContext, 4}};
  std::vector<Cut> all;
  for (const size_t chunk : std::vector<size_t>{1, 7, 64, 100, 256, kContext}) {
    for (const int workers : {1, 2, 4}) all.push_back({chunk, workers});
  }
  return all;
}

class DeterminismTest : public ::testing::TestWithParam<AttentionMode> {};

TEST_P(DeterminismTest, ChunksMixesAndThreadsDoNotChangeABit) {
  const Answers expected = reference(GetParam());
  ASSERT_GT(expected.stored.size(), 10u);
  uint64_t order = 0;
  for (const auto& [chunk, workers] : cuts()) {
    const Answers found = answers_of(variant(chunk, workers, GetParam()), ++order);
    EXPECT_EQ(found.drawn, expected.drawn) << "chunks of " << chunk << ", threads " << workers;
    EXPECT_TRUE(found.stored == expected.stored)
        << "chunks of " << chunk << ", threads " << workers;
  }
}

TEST_P(DeterminismTest, AnyTierAndRecomputingAfterDamageGiveTheSameBits) {
  SimScheduler sim(variant(100, 2, GetParam()));
  const Request request = sim_request(300, 5, 20);
  const std::vector<TokenId> expected = sim.run(request).token_ids;
  sim.sync();
  const auto stored = sim.stored();
  for (const Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk}) {
    if (tier == Tier::kHost) {
      sim.sync();
      sim.scheduler().tick(0);
      sim.cache().drop_tier(Tier::kDevice);
    } else if (tier == Tier::kDisk) {
      sim.drop_ram();
    }
    const Outcome again = sim.run(request);
    EXPECT_EQ(again.token_ids, expected) << tier_name(tier);
    EXPECT_GE(again.restore.restored_tokens[static_cast<size_t>(tier)], 192u);
  }
  const std::vector<BlockCache::Row> rows = sim.cache().rows();
  for (size_t i = 0; i < rows.size(); i += every_mix() ? 1u : 2u) {
    if (rows[i].token_count < kDefaultBlockTokens) continue;
    sim.drop_ram();
    sim.store().corrupt(rows[i].hash, static_cast<uint32_t>(i % 3));
    const Outcome healed = sim.run(request);
    EXPECT_EQ(healed.token_ids, expected);
    EXPECT_EQ(healed.restore.damaged_blocks, 1u);
    sim.sync();
    EXPECT_TRUE(sim.stored() == stored) << "healed with other bytes";
  }
  EXPECT_EQ(sim.cache().stats().dedup_mismatch, 0u);
}

// The order of events is a seed's: restores come in any order beside steps, layers wait for theirs.
TEST(DeterminismSimTest, StepsThatBeginBeforeTheirLastLayersCameGiveTheSameBits) {
  const std::vector<Request> requests = {sim_request(300, 5, 12), sim_request(200, 6, 12),
                                         sim_request(450, 7, 12)};
  std::vector<std::vector<TokenId>> expected;
  for (const Request& request : requests) expected.push_back(answer_alone(request));
  for (uint64_t seed = 1; seed <= seeds(3); ++seed) {
    SimSchedulerOptions options;
    options.sim_seed = seed;
    options.scheduler.chunk_tokens = 100;
    SimScheduler sim(options);
    for (const Request& request : requests) sim.run(request);
    sim.drop_ram();
    if (seed % 3 == 0) {  // a block is lost on the way
      const auto rows = sim.cache().rows();
      sim.store().corrupt(rows[seed % rows.size()].hash, static_cast<uint32_t>(seed / 3 % 3));
    }
    std::vector<uint64_t> ids;
    for (const Request& request : requests) ids.push_back(sim.submit(request));
    sim.run_all();
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(sim.outcomes().at(ids[i]).token_ids, expected[i]) << "seed " << seed;
    }
    EXPECT_EQ(sim.cache().stats().dedup_mismatch, 0u);
  }
}

// In the mode that chooses, a long prompt is computed in the other form than its answer.
TEST(AutoModeTest, AChainRestoredWholeGoesOnAsTheRunWouldHave) {
  constexpr size_t kLong = kNaiveTokens + 40;
  std::vector<std::pair<size_t, Tier>> ways = {{64, Tier::kDevice}, {2048, Tier::kDisk}};
  if (every_mix()) {
    ways.insert(ways.end(), {{64, Tier::kDisk}, {2048, Tier::kDevice}, {300, Tier::kDisk},
                             {300, Tier::kDevice}});
  }
  std::vector<std::vector<TokenId>> found;
  for (const auto& [chunk, tier] : ways) {
    SimSchedulerOptions options = variant(chunk, 2, AttentionMode::kAuto);
    options.scheduler.context_tokens = 2048;
    options.device_slots = 64;
    SimScheduler sim(options);
    Request first = sim_request(kLong, 3, 70);
    const Outcome turn = sim.run(first);
    if (tier == Tier::kDisk) sim.drop_ram();
    Request second = first;
    second.prompt.insert(second.prompt.end(), turn.token_ids.begin(), turn.token_ids.end());
    const Request more = sim_request(kLong, 4, 1);
    second.prompt.insert(second.prompt.end(), more.prompt.begin(), more.prompt.end());
    sim.submit(sim_request(90, 12, 40));  // a neighbour in the absorbed form
    found.push_back(sim.run(second).token_ids);
  }
  ASSERT_FALSE(found[0].empty());
  for (const auto& drawn : found) EXPECT_EQ(drawn, found[0]);
}

TEST(AutoModeTest, ShortPromptsAreAbsorbedWhole) {
  const Answers absorbed = reference(AttentionMode::kAbsorb);
  EXPECT_TRUE(answers_of(variant(100, 2, AttentionMode::kAuto), 3) == absorbed);
}

INSTANTIATE_TEST_SUITE_P(Forms, DeterminismTest,
                         ::testing::Values(AttentionMode::kAbsorb, AttentionMode::kNaive),
                         [](const auto& form) { return attention_mode_name(form.param); });

}  // namespace
}  // namespace ember::testing
