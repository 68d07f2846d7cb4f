// Restore or recompute, judged: many made-up machines on a simulated clock, each against an oracle
// that knows what everything takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/prng.h"
#include "engine/runtime/restore_plan.h"

namespace ember {
namespace {

constexpr int kRequests = 600;
constexpr size_t kChunk = 256;
constexpr double kNoise = 0.15;  // of each duration, up or down

double log_between(Prng& prng, double low, double high) {
  const double unit = static_cast<double>(prng.below(1'000'000)) / 1e6;
  return low * std::pow(high / low, unit);
}

// A machine with a model: what things truly take, in microseconds.
struct World {
  double step_us, token_us, token_position_us;
  std::array<double, kTierCount> start_us{}, byte_us{};
  double token_bytes;

  explicit World(Prng& prng) {
    token_bytes = log_between(prng, 1500, 80'000);
    token_us = log_between(prng, 5, 20'000);
    step_us = token_us * log_between(prng, 0.5, 50);
    token_position_us = token_us / log_between(prng, 2'000, 200'000);
    byte_us[1] = 1 / log_between(prng, 500, 20'000);
    start_us[1] = log_between(prng, 10, 1000);
    byte_us[2] = 1 / log_between(prng, 20, 6000);
    start_us[2] = log_between(prng, 100, 20'000);
    byte_us[3] = 1 / log_between(prng, 5, 2000);
    start_us[3] = log_between(prng, 300, 50'000);
  }
  double compute_us(size_t tokens, size_t position) const {
    const double n = static_cast<double>(tokens);
    return step_us * static_cast<double>((tokens + kChunk - 1) / kChunk) + token_us * n +
           token_position_us * n * (static_cast<double>(position) + n / 2);
  }
  double restore_us(const CostModel::TokensByTier& from) const {
    double us = 0;
    for (size_t tier = 1; tier < kTierCount; ++tier) {
      if (from[tier] == 0) continue;
      us += start_us[tier] + byte_us[tier] * token_bytes * static_cast<double>(from[tier]);
    }
    return us;
  }
};

struct Judgement {
  double taken_us = 0;
  double best_us = 0;
  int profitable = 0;  // hits that the oracle takes for more than what lies on the device
  int taken = 0;       // of those
  double regret() const { return taken_us / best_us - 1; }
};

BlockCache::Match made_match(Prng& prng, size_t prompt) {
  BlockCache::Match match;
  if (prng.below(10) < 3) return match;
  size_t left = 64 * (prng.below(prompt / 64 + 1));
  for (const Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk, Tier::kRemote}) {
    if (left == 0 || prng.below(2) == 0) continue;
    const size_t tokens = tier == Tier::kRemote ? left : 64 * (prng.below(left / 64) + 1);
    match.runs.push_back({tier, tokens});
    match.tokens += tokens;
    left -= tokens;
  }
  return match;
}

// The oracle tries every end of a run.
double best_us(const World& world, size_t prompt, const BlockCache::Match& match,
               bool& profitable) {
  CostModel::TokensByTier from{};
  size_t taken = 0;
  double least = world.compute_us(prompt, 0);
  profitable = false;
  for (const BlockCache::TierRun& run : match.runs) {
    const size_t tokens = std::min(run.tokens, prompt - 1 - taken);
    if (tokens == 0) break;
    taken += tokens;
    from[static_cast<size_t>(run.tier)] += tokens;
    const double us = world.restore_us(from) + world.compute_us(prompt - taken, taken);
    if (us > least) continue;
    least = us;
    profitable = profitable || run.tier != Tier::kDevice;
  }
  return least;
}

double noisy(Prng& prng, double us) {
  return us * (1 - kNoise + 2 * kNoise * static_cast<double>(prng.below(1000)) / 1000);
}

// `changes`: halfway the drive becomes up to 20 times slower or faster.
Judgement judge(uint64_t seed, bool changes) {
  Prng prng(seed);
  World world(prng);
  CostPrior prior = guessed_prior(1'000'000'000, 1, kChunk, 2);
  prior.token_bytes = world.token_bytes;
  CostModel costs(prior);
  costs.saw_compute(1, 0, std::llround(noisy(prng, world.compute_us(1, 0))));  // the warm-up
  RestoreProbe probe;
  Judgement judgement;
  for (int i = 0; i < kRequests; ++i) {
    if (changes && i == kRequests / 2) world.byte_us[2] *= log_between(prng, 0.05, 20);
    const size_t prompt = static_cast<size_t>(log_between(prng, 20, 8000));
    const BlockCache::Match match = made_match(prng, prompt);
    bool profitable = false;
    judgement.best_us += best_us(world, prompt, match, profitable);
    const RestorePlan plan = probe.plan(prompt, match, costs);
    const bool more = plan.restore_us > 0;
    judgement.profitable += profitable ? 1 : 0;
    judgement.taken += profitable && more ? 1 : 0;
    // What the engine would do and measure.
    double restored_us = noisy(prng, world.restore_us(plan.from));
    size_t front = plan.restore_tokens;
    if (restored_us > plan.patience_us) {
      restored_us = plan.patience_us;
      front = plan.from[0];
      costs.saw_cut_restore(plan.from, std::llround(restored_us));
    } else if (restored_us > 0) {
      costs.saw_restore(plan.from, std::llround(restored_us));
    }
    judgement.taken_us += restored_us + world.compute_us(prompt - front, front);
    for (size_t at = front; at < prompt; at += kChunk) {
      const size_t tokens = std::min(kChunk, prompt - at);
      costs.saw_compute(tokens, at, std::llround(noisy(prng, world.compute_us(tokens, at))));
    }
  }
  return judgement;
}

void expect_little_regret(bool changes) {
  constexpr uint64_t kWorlds = 100;
  double worst = 0;
  int profitable = 0, taken = 0;
  for (uint64_t seed = 1; seed <= kWorlds; ++seed) {
    const Judgement judgement = judge(seed, changes);
    EXPECT_LE(judgement.regret(), 0.05) << "seed " << seed;
    // Where few hits pay, and these next to nothing, some are missed.
    if (judgement.profitable > 20) {
      EXPECT_GE(judgement.taken, 0.85 * judgement.profitable) << "seed " << seed;
    }
    worst = std::max(worst, judgement.regret());
    profitable += judgement.profitable;
    taken += judgement.taken;
  }
  EXPECT_GE(taken, 0.95 * profitable);
  std::printf("worst regret %.2f %%; %d of %d profitable hits taken (%.2f %%)\n", 100 * worst,
              taken, profitable, 100.0 * taken / profitable);
}

TEST(RestoreRegretTest, NearlyWhatTheOracleTakesColdStartIncluded) { expect_little_regret(false); }

TEST(RestoreRegretTest, AlsoWhenTheDriveChanges) { expect_little_regret(true); }

}  // namespace
}  // namespace ember
