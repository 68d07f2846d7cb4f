// Store story: what a cache on a real store lives through until it is cut off, and the oracle that
// says what must be found afterwards.
//
// Journey    none; drives a whole block cache on a simulated device: commits, tails, turns, hits,
//            eviction within a small limit, epochs retired, flushes asked for and by age
// Invariant  `must` names only what was reported durable and has not been evicted since; it is
//            brought up to date between any two completions, so before an eviction reaches the disk
// Threads    one
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"

namespace ember::testing {

// What must be found.
struct StoryOracle {
  std::set<BlockHash> must;  // blocks and tails
  uint32_t turns = 0;        // of the one conversation
  friend bool operator==(const StoryOracle&, const StoryOracle&) = default;
};

struct StoryOptions {
  uint64_t seed = 1;
  std::string path;  // of the store
  BaseFileSystem base = nullptr;
  std::function<bool()> is_cut = [] { return false; };
  std::function<void(const StoryOracle&)> tell = [](const StoryOracle&) {};
};

class StoreStory {
 public:
  // `known`: what must be there when it opens.
  StoreStory(StoryOptions options, StoryOracle known);

  // Lives on until it is cut off or has done so many things.
  void run(int events);
  // Whether a turn and new blocks are stored for sure again, within ten seconds.
  bool stores_again();
  // Checks a store that was just opened: every byte, what must be there, order and accounting.
  // `lossy`: reads failed while it lived, so that what was rewritten may be lost; never wrong.
  void expect_whole(bool lossy = false);
  bool is_open() const { return harness_.is_open(); }
  const StoryOracle& oracle() const { return oracle_; }
  CacheHarness& harness() { return harness_; }
  // How often a durable block was found damaged while it lived.
  uint64_t durable_damaged() const { return durable_damaged_; }

 private:
  void event();
  void feed();
  void sync();
  void put_turn();
  bool is_whole(BlockId block);
  void look();  // brings `must` up to date
  std::vector<TokenId> prompt();
  void expect_chain(const std::vector<TokenId>& tokens, bool lossy);
  void expect_blocks(bool lossy);
  void expect_accounts();
  void expect_turns();

  StoryOptions options_;
  Prng prng_;
  ManualClock clock_;
  MemoryStore unused_;
  CacheHarness harness_;
  StoryOracle oracle_;
  std::set<BlockHash> durable_;
  uint64_t durable_damaged_ = 0;
  uint64_t told_ = 0;  // of the set that was told last
};

}  // namespace ember::testing
