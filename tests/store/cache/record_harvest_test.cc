// Gathered records in the order of their chains, over seeds, and what a large store's reopening
// takes of a visit.
#include "store/cache/record_harvest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr uint32_t kSpan = 4;

BlockHash random_hash(Prng& random) {
  BlockHash hash;
  for (uint8_t& byte : hash.bytes) byte = static_cast<uint8_t>(random.below(256));
  return hash;
}

// A forest: each block under a random one before it, or a first block.
std::vector<BlockRecord> random_forest(Prng& random, size_t blocks) {
  std::vector<BlockRecord> records;
  for (size_t i = 0; i < blocks; ++i) {
    BlockRecord record;
    record.hash = random_hash(random);
    record.scope = random.below(3) == 0 ? "anna" : "shared";
    record.publisher = random.below(4) == 0 ? "ben" : "";
    record.numerics_build = i;
    record.epoch = static_cast<uint32_t>(i + 1);
    if (i > 0 && random.below(8) != 0) {
      const size_t among = random.below(3) == 0 ? i : std::min<size_t>(i, 3);
      const BlockRecord& parent = records[i - 1 - random.below(among)];
      record.parent = parent.hash;
      record.position = parent.position + 1;
    }
    for (uint32_t t = 0; t < kSpan; ++t) {
      record.tokens.push_back(static_cast<TokenId>(random.below(3)) - 1);
    }
    records.push_back(record);
  }
  return records;
}

// In the order of hashes, as the disk gives them, over two harvests.
RecordHarvest harvested(std::vector<BlockRecord> records) {
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.hash < b.hash; });
  RecordHarvest first(kSpan);
  RecordHarvest second(kSpan);
  for (size_t i = 0; i < records.size(); ++i) {
    (i < records.size() / 3 ? first : second).add(records[i], {int64_t{5}, 2});
  }
  first.append(std::move(second));
  return first;
}

TEST(RecordHarvestTest, KeepsWhatItWasGiven) {
  Prng random(1);
  const std::vector<BlockRecord> records = random_forest(random, 9000);  // several chunks
  const RecordHarvest harvest = harvested(records);
  std::map<BlockHash, const BlockRecord*> by_hash;
  for (const BlockRecord& record : records) by_hash[record.hash] = &record;
  size_t found = 0;
  for (uint32_t number = 0; number < harvest.end(); ++number) {
    if (!harvest.has(number)) continue;
    ++found;
    const RecordHarvest::Row& row = harvest.row(number);
    ASSERT_TRUE(by_hash.contains(row.hash));
    const BlockRecord& record = *by_hash.at(row.hash);
    EXPECT_EQ(row.parent, record.parent);
    EXPECT_EQ(row.position, record.position);
    EXPECT_EQ(row.numerics_build, record.numerics_build);
    EXPECT_EQ(row.epoch, record.epoch);
    EXPECT_EQ(row.hits, 2u);
    EXPECT_EQ(harvest.name(row.scope), record.scope);
    EXPECT_EQ(harvest.name(row.publisher), record.publisher);
    const TokenSpan tokens = harvest.tokens(number);
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), record.tokens.begin()));
  }
  EXPECT_EQ(found, records.size());
  EXPECT_EQ(harvest.size(), records.size());
}

// Parents before children, siblings as the index orders them, runs one block after another.
void expect_in_order(const RecordHarvest& harvest, const std::vector<BlockRecord>& records) {
  const RecordHarvest::Order order = harvest.parents_first();
  ASSERT_EQ(order.places.size(), records.size());
  std::map<BlockHash, size_t> children;
  std::set<BlockHash> known;
  for (const BlockRecord& record : records) known.insert(record.hash);
  for (const BlockRecord& record : records) {
    if (record.position > 0 && known.contains(record.parent)) ++children[record.parent];
  }
  std::map<BlockHash, std::vector<TokenId>> last_sibling;
  std::set<BlockHash> came;
  size_t leaves = 0;
  for (size_t at = 0; at < order.places.size(); ++at) {
    const RecordHarvest::Place place = order.places[at];
    const RecordHarvest::Row& row = harvest.row(place.number);
    ASSERT_TRUE(came.insert(row.hash).second) << "a record comes twice";
    if (!children.contains(row.hash)) ++leaves;
    const bool has_parent = row.position > 0 && known.contains(row.parent);
    const bool alone = has_parent && children[row.parent] == 1;
    EXPECT_EQ(place.begins_run, !alone);
    if (has_parent) {
      ASSERT_TRUE(came.contains(row.parent));
      const TokenSpan tokens = harvest.tokens(place.number);
      std::vector<TokenId>& before = last_sibling[row.parent];
      EXPECT_FALSE(std::lexicographical_compare(tokens.begin(), tokens.end(), before.begin(),
                                                before.end()));
      before.assign(tokens.begin(), tokens.end());
    }
    for (uint32_t ahead = 1; ahead <= place.run; ++ahead) {
      const RecordHarvest::Row& next = harvest.row(order.places[at + ahead].number);
      EXPECT_EQ(next.parent, harvest.row(order.places[at + ahead - 1].number).hash);
      EXPECT_EQ(children[next.parent], 1u);
    }
    const BlockHash last = harvest.row(order.places[at + place.run].number).hash;
    EXPECT_NE(children.contains(last) ? children[last] : 0, 1u) << "the run goes on";
  }
  EXPECT_EQ(order.leaves, leaves);
}

TEST(RecordHarvestTest, ParentsComeFirstOverSeeds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng random(seed);
    std::vector<BlockRecord> records = random_forest(random, 1 + random.below(600));
    for (uint64_t lost = random.below(4); lost > 0 && records.size() > 1; --lost) {
      records.erase(records.begin() + static_cast<std::ptrdiff_t>(random.below(records.size())));
    }
    expect_in_order(harvested(records), records);
  }
  EXPECT_TRUE(RecordHarvest(kSpan).parents_first().places.empty());
}

// What offload would have written: chains that share their fronts, without payloads to speak of.
void fill_store(MemoryStore& store, CacheHarness& harness, size_t blocks) {
  constexpr uint32_t kChain = 24;
  constexpr size_t kFront = 8;
  BlockHash root;
  for (size_t prompt = 0; store.blocks.size() < blocks; ++prompt) {
    auto tokens = CacheHarness::tokens(1 + prompt / 16, kDefaultBlockTokens * kFront);
    const auto own = CacheHarness::tokens(1000 + prompt, kDefaultBlockTokens * (kChain - kFront));
    tokens.insert(tokens.end(), own.begin(), own.end());
    if (prompt == 0) {
      harness.feed(tokens, false);
      harness.sync();
      harness.drain();
      root = store.blocks.at(harness.hash_of(tokens, 0)).record.parent;
    }
    const BlockRecord like = store.blocks.begin()->second.record;
    const auto payloads = store.blocks.begin()->second.payloads;
    BlockHash parent = root;
    for (uint32_t position = 0; position < kChain; ++position) {
      BlockRecord record = like;
      record.parent = parent;
      record.position = position;
      const auto first = tokens.begin() + std::ptrdiff_t{position} * kDefaultBlockTokens;
      record.tokens.assign(first, first + kDefaultBlockTokens);
      record.hash = parent = harness.hash_of(tokens, position);
      store.blocks.try_emplace(record.hash,
                               MemoryStore::Block{record, {1 + position, 1}, payloads, true});
    }
  }
}

// No visit of the engine thread enters more than its share, and all are there at the end.
TEST(RecordHarvestTest, NoVisitEntersMoreThanAFew) {
  constexpr size_t kBlocks = 10'000;
  constexpr size_t kMostAtOnce = 1024;
  MemoryStore store;
  store.limit_bytes = uint64_t{1} << 40;
  HarnessOptions options;
  options.device_slots = 64;
  CacheHarness harness(options, store);
  fill_store(store, harness, kBlocks);
  harness.reopen();
  ASSERT_TRUE(harness.cache().loading());
  const auto known = [&] { return harness.cache().ledger().index().size(); };
  for (size_t before = known(); harness.cache().loading(); before = known()) {
    harness.step();
    ASSERT_LE(known(), before + kMostAtOnce);
  }
  const EvictionRanks& ranks = harness.cache().ledger().ranks();
  for (size_t before = ranks.to_recall(); before > 0; before = ranks.to_recall()) {
    harness.cache().tick();
    ASSERT_LE(before, ranks.to_recall() + kMostAtOnce);
  }
  harness.drain();
  EXPECT_EQ(harness.cache().stats().blocks[static_cast<size_t>(Tier::kDisk)], store.blocks.size());
  EXPECT_EQ(harness.cache().stats().stranded, 0u);
  harness.cache().check_invariants();
}

}  // namespace
}  // namespace ember::testing
