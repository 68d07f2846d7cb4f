// The cache over an encrypted store: all comes back with the key, nothing without it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/store/cache/cache_harness.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
constexpr size_t kSpan = 64;
constexpr std::string_view kConversationId = "00000000000000a1";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class EncryptedStoreTest : public ::testing::Test {
 protected:
  HarnessOptions options(const std::string& name, bool encrypted) const {
    HarnessOptions made;
    made.sim_seed = 1;
    made.path = folder_.sub(name);
    made.encryption = {encrypted, folder_.sub("master.key")};
    return made;
  }

  static Conversation conversation() {
    Conversation made;
    made.id = kConversationId;
    made.system = "Pellucid instructions for the assistant";
    made.template_name = "templateofmystery";
    Turn turn;
    turn.user = "Wherefore did the obsidian carriage return";
    turn.prompt = CacheHarness::tokens(77, 40);
    turn.answer = CacheHarness::tokens(78, 30);
    turn.finish_reason = "stop";
    turn.state = TurnState::kFinished;
    made.turns.push_back(turn);
    return made;
  }

  // Blocks, a tail and a conversation; closed and opened several times, so that logs are replayed
  // and tables written.
  void use(const std::string& name, bool encrypted) {
    CacheHarness harness(options(name, encrypted), unused_);
    for (int round = 0; round < 3; ++round) {
      ASSERT_NE(harness.cache().conversations(), nullptr) << harness.cache().health().reason;
      EXPECT_EQ(harness.cache().health().reason, "");
      harness.feed(tokens_);
      harness.feed(CacheHarness::tokens(10 + static_cast<uint64_t>(round), kSpan * 2 + 5));
      const Conversation said = conversation();
      ASSERT_TRUE(harness.cache().conversations()->put_head(said).ok());
      ASSERT_TRUE(harness.cache().conversations()->put_turn(said.id, 0, said.turns[0]).ok());
      harness.sync();
      if (round < 2) harness.reopen();
    }
  }

  // Every three tokens in a row, every word: what a reader of the disk would look for.
  std::vector<std::string> needles() const {
    std::vector<std::string> found;
    const Conversation said = conversation();
    for (const auto* ids : {&tokens_, &said.turns[0].prompt, &said.turns[0].answer}) {
      for (size_t i = 0; i + 3 <= ids->size(); ++i) {
        if (i % kSpan > kSpan - 3) continue;  // in two blocks
        std::string bytes(3 * sizeof(TokenId), '\0');
        std::memcpy(bytes.data(), ids->data() + i, bytes.size());
        found.push_back(std::move(bytes));
      }
    }
    for (const char* word : {"Pellucid", "instructions", "assistant", "templateofmystery",
                             "Wherefore", "obsidian", "carriage"}) {
      found.emplace_back(word);
    }
    return found;
  }

  // Bytes of latents as they lie on disk: windows of a clear store's blob files that say something.
  static std::vector<std::string> latent_windows(const std::string& store) {
    std::vector<std::string> windows;
    for (const std::string& path : files_below(store + "/blocks")) {
      if (!path.ends_with(".blob")) continue;
      const std::string bytes = read_file(path);
      for (size_t at = 0; at + 24 <= bytes.size(); at += 64) {
        const std::string window = bytes.substr(at, 24);
        if (std::set<char>(window.begin(), window.end()).size() >= 16) windows.push_back(window);
      }
    }
    return windows;
  }

  static size_t count_found(const std::string& store, const std::vector<std::string>& needles) {
    std::string all;
    for (const std::string& path : files_below(store)) all += path + read_file(path);
    size_t found = 0;
    for (const std::string& needle : needles) found += all.find(needle) != std::string::npos;
    return found;
  }

  ScratchFolder folder_;
  MemoryStore unused_;
  const std::vector<TokenId> tokens_ = CacheHarness::tokens(1, kSpan * 5 + 31);
};

TEST_F(EncryptedStoreTest, EverythingComesBackWithTheKey) {
  use("store", true);
  CacheHarness harness(options("store", true), unused_);
  const auto outcome = harness.feed(tokens_);
  EXPECT_EQ(outcome.report.restored_tokens[static_cast<size_t>(Tier::kDisk)], tokens_.size() - 1);
  EXPECT_EQ(outcome.report.damaged_blocks, 0u);
  const auto said = harness.cache().conversations()->load(std::string(kConversationId));
  ASSERT_TRUE(said.ok()) << said.error().message;
  EXPECT_EQ(said->system, conversation().system);
  EXPECT_EQ(said->turns[0].answer, conversation().turns[0].answer);
  EXPECT_EQ(harness.cache().conversations()->list()->size(), 1u);
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.unreadable_records, 0u);
  EXPECT_EQ(stats.tail_records, 4u);
  EXPECT_LE(stats.disk_bytes, stats.disk_limit_bytes);
  harness.expect_sound();
}

TEST_F(EncryptedStoreTest, NothingOfAPromptLiesInClear) {
  use("clear", false);
  use("sealed", true);
  const std::vector<std::string> words = needles();
  const std::vector<std::string> latents = latent_windows(folder_.sub("clear"));
  // The clear store shows that the search finds what is there.
  EXPECT_EQ(count_found(folder_.sub("clear"), words), words.size());
  EXPECT_GT(latents.size(), 20u);
  EXPECT_EQ(count_found(folder_.sub("sealed"), words), 0u);
  EXPECT_EQ(count_found(folder_.sub("sealed"), latents), 0u);
}

TEST_F(EncryptedStoreTest, AnotherKeyIsAMissAndDestroysNothing) {
  use("store", true);
  HarnessOptions other = options("store", true);
  other.encryption.key_file = folder_.sub("other.key");
  {
    CacheHarness harness(other, unused_);
    EXPECT_EQ(harness.cache().health().state, StoreState::kUnusable);
    EXPECT_NE(harness.cache().health().reason.find("other.key: it is missing"), std::string::npos);
    EXPECT_EQ(harness.feed(tokens_).restored, 0u);
  }
  CacheHarness harness(options("store", true), unused_);
  EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1);
}

TEST_F(EncryptedStoreTest, ForgottenScopeIsAMissInEveryTier) {
  for (bool encrypted : {false, true}) {
    CacheHarness harness(options(encrypted ? "sealed" : "clear", encrypted), unused_);
    harness.feed(tokens_);
    ForgetRequest request;
    request.scope = "shared";
    request.now = true;
    auto chain = harness.open_chain(tokens_, 0);
    EXPECT_EQ(harness.cache().forget(request, [](const auto&) {}).error().code, ErrorCode::kBusy);
    harness.wait_ready(*chain);
    chain.reset();
    harness.sync();
    harness.drain();
    bool told = false;
    const Status begun = harness.cache().forget(request, [&](const Result<ForgetReport>& report) {
      told = true;
      ASSERT_TRUE(report.ok()) << report.error().message;
      EXPECT_EQ(report->blocks, 5u);
      EXPECT_EQ(report->tails, 1u);
      EXPECT_EQ(report->keys, encrypted ? 1u : 0u);
      EXPECT_TRUE(report->bytes_gone) << report->reason;
    });
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    for (int i = 0; i < 1000 && !told; ++i) harness.step();
    EXPECT_TRUE(told);
    const BlockCacheStats stats = harness.cache().stats();
    EXPECT_EQ(stats.indexed_blocks, 0u);
    EXPECT_EQ(stats.stranded, 0u);
    EXPECT_EQ(harness.feed(tokens_).restored, 0u);  // and it is computed and stored anew
    harness.sync();
    harness.reopen();
    EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1);
    EXPECT_EQ(harness.cache().stats().unreadable_records, 0u);
    harness.expect_sound();
  }
}

TEST_F(EncryptedStoreTest, SnapshotOpensWithTheKeyAndIsAsSealed) {
  CacheHarness harness(options("store", true), unused_);
  harness.feed(tokens_);
  const Conversation said = conversation();
  ASSERT_TRUE(harness.cache().conversations()->put_head(said).ok());
  ASSERT_TRUE(harness.cache().conversations()->put_turn(said.id, 0, said.turns[0]).ok());
  harness.sync();
  const Status taken = harness.snapshot(folder_.sub("copy"));
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(count_found(folder_.sub("copy"), needles()), 0u);
  CacheHarness copy(options("copy", true), unused_);
  EXPECT_EQ(copy.cache().health().reason, "");
  EXPECT_EQ(copy.feed(tokens_).restored, tokens_.size() - 1);
  EXPECT_TRUE(copy.cache().conversations()->load(said.id).ok());
}

TEST_F(EncryptedStoreTest, AllOfAUsedStoreIsForItsOwnerAlone) {
  for (mode_t mask : {mode_t{0}, mode_t{022}, mode_t{0277}}) {
    const std::string name = "store" + std::to_string(mask);
    const mode_t before = ::umask(mask);
    use(name, true);
    ::umask(before);
    size_t looked_at = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.sub(name))) {
      const fs::perms expected = entry.is_directory()
                                     ? fs::perms::owner_all
                                     : fs::perms::owner_read | fs::perms::owner_write;
      EXPECT_EQ(entry.status().permissions(), expected) << entry.path() << " umask " << mask;
      ++looked_at;
    }
    EXPECT_GT(looked_at, 10u);
  }
}

TEST_F(EncryptedStoreTest, FilesThatAKillLeftOpenAreClosed) {
  use("store", false);
  const std::string current = folder_.sub("store/blocks/CURRENT");
  fs::permissions(current, fs::perms::others_read, fs::perm_options::add);
  CacheHarness harness(options("store", false), unused_);
  EXPECT_EQ(harness.cache().health().reason, "");
  EXPECT_EQ(fs::status(current).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(EncryptedStoreTest, ModesThatAreTooOpenAreSaid) {
  use("store", false);
  fs::permissions(folder_.sub("store/blocks"), fs::perms::group_read, fs::perm_options::add);
  CacheHarness harness(options("store", false), unused_);
  EXPECT_EQ(harness.cache().health().state, StoreState::kDegraded);
  EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1) << "used all the same";
  EXPECT_NE(harness.cache().health().reason.find("chmod -R go="), std::string::npos)
      << harness.cache().health().reason;
}

}  // namespace
}  // namespace ember::testing
