// The story's events, its oracle, and the checks of what is found.
#include "tests/crash/store_story.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/store/disk/disk_store_testing.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 32;
constexpr uint64_t kBlocksBytes = 2560u << 10;
constexpr const char* kConversation = "00112233445566aa";

HarnessOptions harness_options(const StoryOptions& story, ManualClock& clock) {
  HarnessOptions options;
  options.sim_seed = story.seed + 1;
  options.layers = 32;
  options.layers_per_group = 8 + static_cast<uint32_t>(story.seed % 9);
  options.span = kSpan;
  options.device_slots = 48;
  options.host_slots = 12;
  options.tuning.close_patience_us = 0;  // whoever closes it was cut off, or has synced
  options.clock = &clock;
  options.path = story.path;
  options.blocks_bytes = kBlocksBytes;
  options.base = story.base;
  options.may_fail_to_open = true;
  options.cut_off = story.is_cut;
  return options;
}

Turn story_turn(uint32_t index) {
  Turn turn;
  turn.user = std::string(1 + index * 37 % 900, static_cast<char>('a' + index % 26));
  turn.answer.assign(index * 11 % 70, static_cast<TokenId>(index));
  return turn;
}

}  // namespace

StoreStory::StoreStory(StoryOptions options, StoryOracle known)
    : options_(std::move(options)),
      prng_(options_.seed * 7919 + 1),
      harness_(
          [&] {
            HarnessOptions harness = harness_options(options_, clock_);
            harness.after_step = [this] {
              clock_.advance_us(2000);
              look();
            };
            return harness;
          }(),
          unused_),
      oracle_(std::move(known)),
      durable_(oracle_.must) {}

void StoreStory::run(int events) {
  if (!is_open()) return;
  for (int i = 0; i < events && !options_.is_cut(); ++i) event();
}

bool StoreStory::stores_again() {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t turns = oracle_.turns;
    put_turn();
    harness_.feed(prompt(), true);
    sync();
    if (oracle_.turns > turns && harness_.sync_status().ok()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

void StoreStory::event() {
  switch (prng_.below(8)) {
    case 0: harness_.cache().drop_tier(Tier::kDevice); break;
    case 1: harness_.cache().drop_tier(Tier::kHost); break;
    case 2: sync(); break;
    case 3: put_turn(); break;
    case 4:
      clock_.advance_us(static_cast<int64_t>(prng_.below(12'000'000)));
      harness_.drain();
      break;
    default: harness_.feed(prompt(), prng_.below(2) == 0); break;
  }
}

// A few system prompts that many share, each with many ends, some of them inside of a block.
std::vector<TokenId> StoreStory::prompt() {
  const size_t length = 1 + prng_.below(kSpan * 10);
  auto tokens = CacheHarness::tokens(prng_.below(4), length);
  const size_t shared = prng_.below(length);
  const auto own = CacheHarness::tokens(1000 + prng_.below(400), length);
  std::copy(own.begin() + static_cast<std::ptrdiff_t>(shared), own.end(),
            tokens.begin() + static_cast<std::ptrdiff_t>(shared));
  return tokens;
}

void StoreStory::sync() {
  harness_.sync();
  if (!harness_.sync_status().ok()) return;
  const BlockLedger& ledger = harness_.cache().ledger();
  for (BlockId block : ledger.index().all_blocks()) {
    if (is_whole(block)) durable_.insert(ledger.entry(block).hash);
  }
  told_ = 0;
  look();
}

// What hangs under a block that the disk does not have is of no use, however safe it is itself.
bool StoreStory::is_whole(BlockId block) {
  const BlockLedger& ledger = harness_.cache().ledger();
  for (; block != kNoBlock; block = ledger.entry(block).parent) {
    const BlockEntry& entry = ledger.entry(block);
    if (!entry.in(Tier::kDisk) || entry.damaged) return false;
  }
  return true;
}

void StoreStory::put_turn() {
  Conversations* conversations = harness_.cache().conversations();
  if (conversations == nullptr) return;
  if (oracle_.turns == 0) {
    Conversation head;
    head.id = kConversation;
    if (!conversations->put_head(head).ok()) return;
  }
  if (!conversations->put_turn(kConversation, oracle_.turns, story_turn(oracle_.turns)).ok()) {
    return;
  }
  ++oracle_.turns;
  options_.tell(oracle_);
}

void StoreStory::look() {
  if (!is_open() || options_.is_cut() || durable_.empty()) return;
  // Until all is read nothing is evicted, and what has not come is not gone.
  if (harness_.cache().loading()) return;
  const BlockLedger& ledger = harness_.cache().ledger();
  uint64_t sum = 1;
  std::vector<BlockHash> there;
  for (BlockId block : ledger.index().all_blocks()) {
    const BlockEntry& entry = ledger.entry(block);
    if (!entry.in(Tier::kDisk)) continue;
    if (entry.damaged) {
      durable_damaged_ += durable_.contains(entry.hash) ? 1u : 0u;
      continue;
    }
    uint64_t half;
    std::memcpy(&half, entry.hash.bytes.data(), sizeof half);
    sum += half;
    there.push_back(entry.hash);
  }
  if (sum == told_) return;
  told_ = sum;
  std::set<BlockHash> must;
  for (const BlockHash& hash : there) {
    if (durable_.contains(hash)) must.insert(hash);
  }
  // What was evicted and is computed again is durable only after the next flush.
  durable_ = must;
  if (must == oracle_.must) return;
  oracle_.must = std::move(must);
  options_.tell(oracle_);
}

void StoreStory::expect_whole(bool lossy) {
  ASSERT_TRUE(is_open()) << "the store cannot be opened";
  BlockCacheImpl& cache = harness_.cache();
  EXPECT_EQ(cache.health().reason, "");
  ASSERT_NE(cache.parts().disk, nullptr) << "the store cannot be used";
  for (int i = 0; i < 100'000 && cache.loading(); ++i) harness_.step();
  EXPECT_FALSE(cache.loading());
  cache.check_invariants();
  const BlockCacheStats stats = cache.stats();
  EXPECT_EQ(stats.unreadable_records, 0u);
  EXPECT_EQ(stats.stranded, 0u);
  if (!lossy) {
    EXPECT_EQ(stats.holes, 0u);
    EXPECT_EQ(stats.foreign_blocks, 0u);
  }
  expect_accounts();
  expect_turns();
  expect_blocks(lossy);
  if (!lossy) {
    EXPECT_EQ(cache.stats().damaged_blocks, 0u);
  }
}

void StoreStory::expect_blocks(bool lossy) {
  std::set<BlockHash> found;
  std::vector<std::vector<TokenId>> chains;
  const BlockLedger& ledger = harness_.cache().ledger();
  for (BlockId block : ledger.index().all_blocks()) {
    if (ledger.entry(block).in(Tier::kDisk)) found.insert(ledger.entry(block).hash);
    if (ledger.entry(block).children > 0) continue;
    std::vector<TokenId> chain;
    for (BlockId b = block; b != kNoBlock; b = ledger.entry(b).parent) {
      const std::vector<TokenId> tokens = ledger.index().tokens(b);
      chain.insert(chain.begin(), tokens.begin(), tokens.end());
    }
    chains.push_back(std::move(chain));
  }
  size_t lost = 0;
  for (const BlockHash& hash : oracle_.must) lost += found.contains(hash) ? 0u : 1u;
  if (!lossy) {
    EXPECT_EQ(lost, 0u) << "durable blocks, of " << oracle_.must.size();
  }
  for (const std::vector<TokenId>& chain : chains) expect_chain(chain, lossy);
}

// All of it comes back, and right.
void StoreStory::expect_chain(const std::vector<TokenId>& tokens, bool lossy) {
  std::vector<TokenId> longer = tokens;
  longer.push_back(1);
  const size_t matched = harness_.cache().match(longer).tokens;
  if (!lossy) {
    EXPECT_EQ(matched, tokens.size());
  }
  const std::unique_ptr<Chain> chain = harness_.open_chain(longer, matched);
  ASSERT_NE(chain, nullptr);
  harness_.wait_ready(*chain);
  if (!lossy) {
    EXPECT_EQ(chain->length(), matched);
  }
  harness_.expect_rows(*chain, longer, chain->length());
}

void StoreStory::expect_accounts() {
  DiskTier& disk = *harness_.cache().parts().disk;
  const Result<DiskTier::Listing> listing = disk.list();
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  uint64_t stored = 0;
  for (const auto& [record, touch] : listing->records) stored += record.stored_bytes();
  EXPECT_EQ(disk.stats().blocks, listing->records.size());
  EXPECT_EQ(disk.stats().stored_bytes, stored);
  expect_counted_as_on_disk(disk, options_.path + "/blocks");
}

void StoreStory::expect_turns() {
  Conversations* conversations = harness_.cache().conversations();
  ASSERT_NE(conversations, nullptr) << "no conversations";
  if (oracle_.turns == 0) return;
  const Result<Conversation> loaded = conversations->load(kConversation);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_GE(loaded->turns.size(), oracle_.turns);
  for (uint32_t i = 0; i < loaded->turns.size(); ++i) {
    EXPECT_EQ(loaded->turns[i].user, story_turn(i).user);
    EXPECT_EQ(loaded->turns[i].answer, story_turn(i).answer);
  }
}

}  // namespace ember::testing
