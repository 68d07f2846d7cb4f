// Making the store, flipping its bits, and comparing.
#include "tests/store/cache/flip_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/store/disk/disk_store_testing.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
constexpr size_t kSpan = 64;
constexpr uint64_t kChains = 6;
constexpr size_t kChainTokens = 8 * kSpan + 25;
constexpr size_t kSharedTokens = 3 * kSpan;  // the first blocks of every second chain
constexpr size_t kHarmlessAtOnce = 48;
constexpr uint64_t kWriteEvery = 64;  // openings
constexpr size_t kHealingTurns = 8;  // as many as a chain has blocks
constexpr const char* kIds[] = {"00112233445566aa", "00112233445566bb"};

std::vector<TokenId> chain_tokens(uint64_t chain) {
  std::vector<TokenId> tokens = CacheHarness::tokens(chain + 1, kChainTokens);
  if (chain % 2 == 1) {
    const std::vector<TokenId> shared = CacheHarness::tokens(99, kSharedTokens);
    std::copy(shared.begin(), shared.end(), tokens.begin());
  }
  return tokens;
}

HarnessOptions store_options(const std::string& path) {
  HarnessOptions options;
  options.path = path;
  options.device_slots = 64;
  options.host_slots = 64;
  return options;
}

FlipKind kind_of(const std::string& name) {
  const std::string file = fs::path(name).filename().string();
  if (name.starts_with("quarantine/")) return FlipKind::kQuarantine;
  if (file.ends_with(".blob")) return FlipKind::kBlob;
  if (file.ends_with(".sst")) return FlipKind::kTable;
  if (file.ends_with(".log")) return FlipKind::kLog;
  if (file.starts_with("MANIFEST")) return FlipKind::kManifest;
  if (file == "CURRENT") return FlipKind::kCurrent;
  if (name == "IDENTITY") return FlipKind::kIdentity;
  if (file.starts_with("OPTIONS")) return FlipKind::kOptions;
  return FlipKind::kOther;
}

bool decides_nothing(FlipKind kind) {
  return kind == FlipKind::kBlob || kind == FlipKind::kOptions || kind == FlipKind::kQuarantine ||
         kind == FlipKind::kOther;
}

Turn turn_of(uint32_t index) {
  Turn turn;
  turn.user = "question " + std::to_string(index);
  turn.answer.assign(20, static_cast<TokenId>(index));
  turn.state = TurnState::kFinished;
  return turn;
}

void put_conversation(Conversations& conversations, const char* id) {
  Conversation head;
  head.id = id;
  head.system = "a system prompt";
  ASSERT_TRUE(conversations.put_head(head).ok());
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(conversations.put_turn(id, i, turn_of(i)).ok());
}

// A store opened for reading: what does not open is absent, as it is for the cache.
StoreParts read_only_parts(const std::string& path) {
  StoreParts parts;
  auto directory = StoreDirectory::open_read_only(path);
  if (!directory.ok()) {
    EXPECT_EQ(directory.error().code, ErrorCode::kCorruption) << directory.error().message;
    parts.reason = directory.error().message;
    return parts;
  }
  parts.directory = std::move(*directory);
  parts.secret = parts.directory->secret();
  parts.quarantine = Quarantine::open(path + "/quarantine", 1u << 20, true);
  DiskTierOptions disk;
  disk.directory = path + "/blocks";
  disk.limit_bytes = 64u << 20;
  disk.block_cache_bytes = 1u << 20;
  disk.read_only = true;
  auto blocks = DiskTier::open(disk);
  if (blocks.ok()) {
    parts.disk = std::move(*blocks);
  } else {
    parts.reason = blocks.error().message;
  }
  ConversationsOptions turns;
  turns.directory = path + "/conversations";
  turns.read_only = true;
  auto conversations = Conversations::open(turns);
  if (conversations.ok()) {
    parts.conversations = std::move(*conversations);
  } else {
    parts.reason += conversations.error().message;
  }
  return parts;
}

}  // namespace

const char* flip_kind_name(FlipKind kind) {
  constexpr const char* kNames[] = {"blob",     "table",   "log",        "manifest", "current",
                                    "identity", "options", "quarantine", "other"};
  return kNames[static_cast<size_t>(kind)];
}

void FlipCounts::add(const FlipCounts& other) {
  for (size_t kind = 0; kind < kFlipKinds; ++kind) {
    files[kind] = other.files[kind];
    bytes[kind] = other.bytes[kind];
    flips[kind] += other.flips[kind];
    refused[kind] += other.refused[kind];
    noticed[kind] += other.noticed[kind];
  }
  openings += other.openings;
  openings_for_writing += other.openings_for_writing;
  healed += other.healed;
  writes_stopped += other.writes_stopped;
  groups_right += other.groups_right;
  groups_refused += other.groups_refused;
  rows_restored += other.rows_restored;
  conversations_right += other.conversations_right;
  conversations_refused += other.conversations_refused;
}

void FlipRun::make_store(const std::string& path) {
  MemoryStore unused;
  CacheHarness harness(store_options(path), unused);
  for (uint64_t chain = 0; chain < kChains; ++chain) {
    harness.feed(chain_tokens(chain));
    harness.sync();
    // By half time all that was said goes from the log to tables.
    if (chain == kChains / 2) {
      put_conversation(*harness.cache().conversations(), kIds[0]);
      harness.reopen();
    }
  }
  put_conversation(*harness.cache().conversations(), kIds[1]);
  harness.close();
  QuarantineEntry entry;
  entry.hash = made_hash(1);
  entry.reason = "a record for the flips";
  entry.found.record.assign(300, 'r');
  ASSERT_TRUE(Quarantine::open(path + "/quarantine", 1u << 20)->keep(entry, 1).ok());
  ASSERT_TRUE(write_scrub_mark(path + "/SCRUB", {true, made_hash(2), 3, 4}).ok());
}

FlipRun::FlipRun(const std::string& pristine, const std::string& path)
    : pristine_(pristine), path_(path) {
  fs::remove_all(path_);
  fs::copy(pristine_, path_, fs::copy_options::recursive);
  find_files();
  read_truth();
}

void FlipRun::find_files() {
  for (const std::string& file : files_below(pristine_)) {
    const std::string name = fs::relative(file, pristine_).string();
    // The lock holds a pid for people; the ballast is room, not bytes.
    if (fs::path(name).filename() == "LOCK" || fs::path(name).filename() == "BALLAST") continue;
    const File found{name, kind_of(name), fs::file_size(file)};
    if (found.size == 0) continue;
    files_.push_back(found);
    total_bytes_ += found.size;
    ++counts_.files[static_cast<size_t>(found.kind)];
    counts_.bytes[static_cast<size_t>(found.kind)] += found.size;
  }
}

void FlipRun::read_truth() {
  const StoreParts parts = read_only_parts(path_);
  ASSERT_TRUE(parts.disk && parts.conversations) << parts.reason;
  const auto listing = parts.disk->list();
  ASSERT_TRUE(listing.ok());
  for (const auto& [record, touch] : listing->records) {
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      std::vector<std::byte> raw(record.groups[group].raw_bytes);
      ASSERT_TRUE(parts.disk->read_group(record, group, raw).ok());
      truth_[record.hash].push_back(std::move(raw));
    }
  }
  for (const char* id : kIds) {
    auto whole = parts.conversations->load(id);
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    conversations_.push_back(std::move(*whole));
  }
}

FlipRun::Flip FlipRun::draw(Prng& prng) const {
  uint64_t at = prng.below(total_bytes_);
  size_t file = 0;
  for (; at >= files_[file].size; ++file) at -= files_[file].size;
  return {file, at, static_cast<uint8_t>(1u << prng.below(8))};
}

// Flipping twice is not flipping.
void FlipRun::apply(const std::string& store, const std::vector<Flip>& flips) const {
  for (const Flip& flip : flips) {
    const std::string path = store + "/" + files_[flip.file].name;
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << path;
    uint8_t byte = 0;
    const auto at = static_cast<off_t>(flip.at);
    ASSERT_EQ(::pread(fd, &byte, 1, at), 1) << path;
    byte = static_cast<uint8_t>(byte ^ flip.mask);
    ASSERT_EQ(::pwrite(fd, &byte, 1, at), 1) << path;
    ::close(fd);
  }
}

void FlipRun::take(Queue& queue, size_t most, std::vector<Flip>& round) const {
  for (size_t taken = 0; taken < most && !queue.empty(); ++taken) {
    round.push_back(queue.back());
    queue.pop_back();
  }
}

FlipCounts FlipRun::run(uint64_t seed, uint64_t flips) {
  Prng prng(seed);
  Queue harmless, blocks, turns, whole_store;
  for (uint64_t i = 0; i < flips; ++i) {
    const Flip flip = draw(prng);
    const File& file = files_[flip.file];
    Queue& queue = decides_nothing(file.kind)                ? harmless
                   : file.name.starts_with("blocks/")        ? blocks
                   : file.name.starts_with("conversations/") ? turns
                                                             : whole_store;
    queue.push_back(flip);
  }
  while (!(harmless.empty() && blocks.empty() && turns.empty() && whole_store.empty())) {
    std::vector<Flip> round;
    take(turns, 1, round);
    const size_t before = round.size();
    take(blocks, 1, round);
    if (round.size() == before) take(harmless, kHarmlessAtOnce, round);
    if (round.empty()) take(whole_store, 1, round);
    const bool writing = counts_.openings % kWriteEvery == kWriteEvery - 1;
    if (writing) {
      try_writing(round);
    } else {
      try_reading(round);
    }
    ++counts_.openings;
    if (::testing::Test::HasFailure()) {
      for (const Flip& flip : round) {
        ADD_FAILURE() << files_[flip.file].name << " byte " << flip.at << " mask "
                      << static_cast<int>(flip.mask) << (writing ? ", opened for writing" : "");
      }
      break;
    }
  }
  return counts_;
}

void FlipRun::check_blocks(DiskTier& disk) {
  const auto listing = disk.list();
  if (!listing.ok()) return;
  std::vector<std::byte> raw;
  for (const auto& [record, touch] : listing->records) {
    const auto truth = truth_.find(record.hash);
    ASSERT_NE(truth, truth_.end()) << "a record that was never written";
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      raw.resize(record.groups[group].raw_bytes);
      if (!disk.read_group(record, group, raw).ok()) {
        ++counts_.groups_refused;
        continue;
      }
      ASSERT_EQ(raw, truth->second.at(group)) << "wrong bytes were accepted";
      ++counts_.groups_right;
    }
  }
}

void FlipRun::check_conversations(Conversations& conversations) {
  for (const Conversation& whole : conversations_) {
    const auto loaded = conversations.load(whole.id);
    if (!loaded.ok()) {
      ++counts_.conversations_refused;
      continue;
    }
    ++counts_.conversations_right;
    ASSERT_EQ(loaded->system, whole.system);
    ASSERT_EQ(loaded->turns.size(), whole.turns.size()) << "turns were silently forgotten";
    for (size_t i = 0; i < whole.turns.size(); ++i) {
      ASSERT_EQ(loaded->turns[i].user, whole.turns[i].user);
      ASSERT_EQ(loaded->turns[i].answer, whole.turns[i].answer);
    }
  }
}

void FlipRun::try_reading(const std::vector<Flip>& round) {
  apply(path_, round);
  StoreParts parts = read_only_parts(path_);
  const bool blocks_refused = parts.disk == nullptr;
  const bool turns_refused = parts.conversations == nullptr;
  if (blocks_refused || turns_refused) {
    EXPECT_FALSE(parts.reason.empty());
    EXPECT_EQ(parts.reason.find('\n'), std::string::npos) << parts.reason;
  }
  const uint64_t refused_before = counts_.groups_refused + counts_.conversations_refused;
  if (!blocks_refused) check_blocks(*parts.disk);
  if (!turns_refused) check_conversations(*parts.conversations);
  EXPECT_TRUE(!parts.quarantine || parts.quarantine->list().size() <= 1);
  static_cast<void>(read_scrub_mark(path_ + "/SCRUB"));
  uint64_t missing = counts_.groups_refused + counts_.conversations_refused - refused_before;

  HarnessOptions options = store_options(path_);
  options.parts = [&parts] { return std::move(parts); };
  CacheHarness harness(options, unused_);
  for (uint64_t chain = 0; chain < kChains; ++chain) {
    const std::vector<TokenId> tokens = chain_tokens(chain);
    const size_t matched = harness.cache().match(tokens).tokens;
    const std::unique_ptr<Chain> restored = harness.open_chain(tokens, matched);
    ASSERT_NE(restored, nullptr) << "a request fails for the store's damage";
    harness.wait_ready(*restored);
    harness.expect_rows(*restored, tokens, restored->length());
    counts_.rows_restored += restored->length();
    if (restored->length() + 1 < tokens.size()) ++missing;
  }
  settle(round, blocks_refused, turns_refused, missing);
  harness.close();
  apply(path_, round);
}

void FlipRun::settle(const std::vector<Flip>& round, bool blocks_refused, bool turns_refused,
                     uint64_t missing) {
  for (const Flip& flip : round) {
    const File& file = files_[flip.file];
    const auto kind = static_cast<size_t>(file.kind);
    ++counts_.flips[kind];
    const bool refused = file.name.starts_with("conversations/") ? turns_refused : blocks_refused;
    if (refused && !decides_nothing(file.kind)) {
      ++counts_.refused[kind];
    } else if (missing > 0 && round.size() == 1) {
      ++counts_.noticed[kind];
    }
  }
}

// As a process would: opened for writing, used, healed, closed, and opened again.
void FlipRun::try_writing(const std::vector<Flip>& round) {
  const std::string copy = path_ + "-written";
  fs::remove_all(copy);
  fs::copy(pristine_, copy, fs::copy_options::recursive);
  apply(copy, round);
  bool refused = false;
  {
    CacheHarness harness(store_options(copy), unused_);
    refused = harness.cache().health().state == StoreState::kUnusable;
    for (uint64_t chain = 0; chain < kChains; ++chain) {
      ASSERT_TRUE(harness.feed(chain_tokens(chain)).opened);
    }
    harness.sync();
    if (Conversations* turns = harness.cache().conversations()) check_conversations(*turns);
    harness.drain();
    harness.sync();
    const BlockCacheStats stats = harness.cache().stats();
    const bool stored = !refused && stats.offload_failures == 0;
    // A turn meets the first damage of a chain, and heals it; the next one may lie behind.
    bool whole = false;
    for (size_t turn = 0; turn < kHealingTurns && !whole; ++turn) {
      harness.reopen();
      harness.expect_sound();
      whole = true;
      for (uint64_t chain = 0; chain < kChains; ++chain) {
        const auto outcome = harness.feed(chain_tokens(chain));
        ASSERT_TRUE(outcome.opened);
        whole = whole && outcome.restored >= kChainTokens / kSpan * kSpan;
      }
      harness.sync();
    }
    // A compaction may meet a damaged table at any time, and says so.
    const bool stopped = !stored || (!whole && !harness.cache().health().reason.empty());
    EXPECT_TRUE(whole || stopped) << "damage was not healed";
    ++(stopped ? counts_.writes_stopped : counts_.healed);
  }
  ++counts_.openings_for_writing;
  settle(round, refused, false, 0);
}

}  // namespace ember::testing
