// Repair of databases that RocksDB refuses: whatever was damaged, afterwards the store opens, all
// that is in it is proven, what was whole is there, and requests run on it.
#include "store/store_repair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "store/disk/conversations_format.h"
#include "store/store_editor.h"
#include "store/store_reader.h"
#include "store/taken_aside.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/store/disk/raw_database.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kDiskBytes = 64u << 20;
constexpr size_t kSpan = 64;
constexpr size_t kTokens = kSpan * 3 + 7;
constexpr uint64_t kChains = 5;
constexpr const char* kTalk = "00112233445566aa";
constexpr const char* kOtherTalk = "ff112233445566aa";

class StoreRepairTest : public ::testing::TestWithParam<bool> {
 protected:
  StoreRepairTest() {
    if (GetParam()) encryption_ = {.on = true, .key_file = folder_.sub("key")};
    make(folder_.sub("whole"));
    EXPECT_FALSE(HasFailure());
  }

  HarnessOptions options(const std::string& path) const {
    HarnessOptions options;
    options.path = path;
    options.disk_bytes = kDiskBytes;
    options.encryption = encryption_;
    return options;
  }
  static std::vector<TokenId> chain(uint64_t seed) { return CacheHarness::tokens(seed, kTokens); }

  // Chains in tables and epochs of their own, conversations in tables and in a log.
  void make(const std::string& path) {
    MemoryStore unused;
    for (uint64_t seed = 1; seed <= kChains; ++seed) {
      CacheHarness harness(options(path), unused);
      harness.feed(chain(seed));
      harness.sync();
      Conversations& talks = *harness.cache().conversations();
      const std::string id = seed < 4 ? kTalk : kOtherTalk;
      Conversation head;
      head.id = id;
      head.system = "a system prompt";
      ASSERT_TRUE(talks.put_head(head).ok());
      const auto first = static_cast<uint32_t>(seed < 4 ? (seed - 1) * 4 : (seed - 4) * 4);
      for (uint32_t i = first; i < first + 4; ++i) ASSERT_TRUE(talks.put_turn(id, i, turn(i)).ok());
    }
  }
  static Turn turn(uint32_t index) {
    Turn turn;
    turn.user = "question " + std::to_string(index);
    turn.answer.assign(20, static_cast<TokenId>(index));
    turn.state = TurnState::kFinished;
    return turn;
  }

  // A copy of the whole store, to be damaged.
  std::string copy() {
    std::error_code ignored;
    fs::remove_all(store_, ignored);
    store_ = folder_.sub("store" + std::to_string(copies_++));
    fs::copy(folder_.sub("whole"), store_, fs::copy_options::recursive);
    return store_;
  }
  std::vector<std::string> files(const std::string& database, const std::string& ending) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.sub("whole/" + database))) {
      const std::string name = entry.path().filename().string();
      const bool meant = ending == "MANIFEST" ? name.starts_with(ending) : name.ends_with(ending);
      if (meant && entry.file_size() > 0) found.push_back(database + "/" + name);
    }
    std::sort(found.begin(), found.end());
    EXPECT_FALSE(found.empty()) << ending;
    return found;
  }
  void flip(const std::string& file, double where) const {
    const std::string path = store_ + "/" + file;
    const auto at = static_cast<std::streamoff>(
        where * static_cast<double>(fs::file_size(path) - 1));
    std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
    out.seekg(at);
    const char byte = static_cast<char>(out.get());
    out.seekp(at);
    out.put(static_cast<char>(byte ^ 0x10));
  }

  Result<std::unique_ptr<StoreRepair>> open(bool look_only = false) const {
    return StoreRepair::open(store_, encryption_, kDiskBytes, look_only);
  }
  static bool go_on(const char*, double) { return true; }

  Renewed repair() {
    auto opened = open();
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    if (!opened.ok()) return {};
    EXPECT_TRUE((*opened)->blocks().any() || (*opened)->conversations().any());
    Result<Renewed> done = (*opened)->renew(go_on);
    EXPECT_TRUE(done.ok()) << done.error().message;
    return done.ok() ? *done : Renewed{};
  }

  // Nothing is left to mend, and every byte that is there is right. Returns the blocks.
  uint64_t expect_well() {
    {
      auto again = open(true);
      EXPECT_TRUE(again.ok());
      EXPECT_FALSE((*again)->blocks().any() || (*again)->conversations().any());
    }
    uint64_t blocks = 0;
    auto reader = open_resting_store(store_, encryption_);
    EXPECT_TRUE(reader.ok()) << reader.error().message;
    if (!reader.ok()) return 0;
    std::vector<BlockRecord> records;
    const auto walked = (*reader)->walk([&records](const BlockSight& sight) {
      records.push_back(sight.record);
      return true;
    });
    EXPECT_TRUE(walked.ok() && walked->unreadable == 0);
    for (const BlockRecord& record : records) {
      if (!record.tail && record.epoch == 0) continue;  // a hole
      blocks += record.tail ? 0 : 1;
      for (uint32_t group = 0; group < record.groups.size(); ++group) {
        std::vector<std::byte> raw(record.groups[group].raw_bytes);
        const Status read = (*reader)->read_group(record, group, raw);
        EXPECT_TRUE(read.ok()) << read.error().message;
      }
    }
    reader->reset();
    // Requests: what is restored is compared row by row, the rest is computed and stored.
    {
      MemoryStore unused;
      CacheHarness harness(options(store_), unused);
      for (uint64_t seed = 1; seed <= kChains; ++seed) harness.feed(chain(seed));
      harness.sync();
      harness.reopen();
      for (uint64_t seed = 1; seed <= kChains; ++seed) {
        EXPECT_EQ(harness.feed(chain(seed)).restored, kTokens - 1);
      }
      harness.expect_sound();
    }
    return blocks;
  }
  void expect_talks(size_t turns) const {
    auto reader = open_resting_store(store_, encryption_);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    const auto talk = (*reader)->conversations().load(kTalk);
    ASSERT_TRUE(talk.ok()) << talk.error().message;
    ASSERT_EQ(talk->turns.size(), turns);
    for (uint32_t i = 0; i < turns; ++i) EXPECT_EQ(talk->turns[i].user, turn(i).user);
  }

  ScratchFolder folder_;
  EncryptionOptions encryption_;
  std::string store_;
  int copies_ = 0;
};

INSTANTIATE_TEST_SUITE_P(InClearAndSealed, StoreRepairTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Sealed" : "InClear"; });

TEST_P(StoreRepairTest, AWholeStoreHasNothingToMend) {
  copy();
  auto opened = open(true);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ((*opened)->blocks().broken, std::vector<std::string>());
  EXPECT_EQ((*opened)->conversations().broken, std::vector<std::string>());
  EXPECT_FALSE((*opened)->blocks().any() || (*opened)->conversations().any());
}

// As a kill in the midst of a flush or a compaction leaves it: no manifest knows of it.
TEST_P(StoreRepairTest, AHalfWrittenTableThatIsInNoManifestIsNoDamage) {
  copy();
  for (const char* database : {"blocks", "conversations"}) {
    const std::string table = store_ + "/" + files(database, ".sst").back();
    const std::string half = store_ + "/" + database + "/900000.sst";
    fs::copy_file(table, half);
    fs::resize_file(half, fs::file_size(half) / 2);
  }
  EXPECT_EQ(expect_well(), kChains * 3);
  expect_talks(12);
}

TEST_P(StoreRepairTest, AFolderThatIsNotThereIsSaidAndMadeAnew) {
  copy();
  fs::remove_all(store_ + "/conversations");
  {
    auto opened = open(true);
    ASSERT_TRUE(opened.ok());
    EXPECT_TRUE((*opened)->conversations().any());
    EXPECT_FALSE(fs::exists(store_ + "/conversations"));
  }
  const Renewed done = repair();
  EXPECT_TRUE(done.conversations);
  EXPECT_EQ(done.saved_conversations, 0u);
  EXPECT_TRUE(done.aside.empty());
  EXPECT_EQ(expect_well(), kChains * 3);
}

TEST_P(StoreRepairTest, AFlippedByteOfATableCostsAtMostItsBlock) {
  uint64_t saved = 0, tables = 0;
  for (const std::string& table : files("blocks", ".sst")) {
    for (const double where : {0.1, 0.5}) {
      SCOPED_TRACE(table + " at " + std::to_string(where));
      copy();
      flip(table, where);
      const Renewed done = repair();
      EXPECT_TRUE(done.blocks);
      EXPECT_EQ(done.kept_files, std::vector<std::string>{table});
      EXPECT_TRUE(fs::exists(done.aside + "/" + table));
      saved += expect_well();
      ++tables;
      expect_talks(12);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(saved * 10, tables * kChains * 3 * 8);  // small tables are one block
}

TEST_P(StoreRepairTest, TornAndMissingFilesAreMended) {
  const std::string table = files("blocks", ".sst").front();
  const std::string blob = files("blocks", ".blob").front();
  for (const std::string& file : {table, blob}) {
    for (const bool gone : {false, true}) {
      SCOPED_TRACE(file + (gone ? " gone" : " cut in half"));
      copy();
      const std::string path = store_ + "/" + file;
      if (gone) {
        fs::remove(path);
      } else {
        fs::resize_file(path, fs::file_size(path) / 2);
      }
      repair();
      EXPECT_GE(expect_well(), (kChains - 1) * 3);
    }
  }
}

TEST_P(StoreRepairTest, WithoutManifestAndCurrentNothingIsLost) {
  const std::string manifest = files("blocks", "MANIFEST").back();
  for (int damage = 0; damage < 4; ++damage) {
    SCOPED_TRACE(damage);
    copy();
    if (damage == 0) flip(manifest, 0.3);
    if (damage == 1) fs::remove(store_ + "/" + manifest);
    if (damage == 2) fs::remove(store_ + "/blocks/CURRENT");
    if (damage == 3) std::ofstream(store_ + "/blocks/CURRENT") << "rubbish\n";
    const Renewed done = repair();
    EXPECT_EQ(done.saved_blocks, kChains * 3);
    EXPECT_EQ(done.lost_blocks, 0u);
    EXPECT_EQ(expect_well(), kChains * 3);
  }
}

TEST_P(StoreRepairTest, ConversationsAreSavedAsFarAsTheyCanBeRead) {
  for (const char* ending : {".sst", ".log", "MANIFEST"}) {
    const std::string file = files("conversations", ending).back();
    for (const double where : {0.3, 0.7}) {
      SCOPED_TRACE(file + " at " + std::to_string(where));
      copy();
      flip(file, where);
      const Renewed done = repair();
      EXPECT_TRUE(done.conversations);
      EXPECT_FALSE(done.kept_files.empty());  // what people said is kept as it was, too
      expect_well();
      auto reader = open_resting_store(store_, encryption_);
      ASSERT_TRUE(reader.ok());
      const auto heads = (*reader)->conversations().list();
      ASSERT_TRUE(heads.ok());
      uint64_t turns = 0;
      for (const Conversation& head : *heads) {
        const auto talk = (*reader)->conversations().load(head.id);
        ASSERT_TRUE(talk.ok()) << talk.error().message;
        for (uint32_t i = 0; i < talk->turns.size(); ++i) {
          EXPECT_EQ(talk->turns[i].user, turn(i).user);
        }
        turns += talk->turns.size();
      }
      EXPECT_EQ(turns, done.saved_turns);
      // A small table is one block.
      EXPECT_GE(turns, std::string(ending) == ".sst" ? 0u : 16u);
      const uint64_t named = done.cut_conversations.size() + done.lost_conversations.size();
      EXPECT_TRUE(turns == 20 || named > 0 || heads->size() < 2) << "turns went in silence";
    }
  }
}

// Tables that are whole may hold a value that is not, or lack one.
TEST_P(StoreRepairTest, ConversationsThatCannotBeResumedAreCut) {
  for (const bool missing : {true, false}) {
    SCOPED_TRACE(missing ? "a turn is missing" : "a turn is damaged");
    copy();
    RawDatabase(store_ + "/conversations")
        .edit("turns", turn_key(kTalk, 5), [missing](std::string& value) {
          return !missing && flip_middle(value);
        });
    {
      const auto looked = open(true);
      ASSERT_TRUE(looked.ok()) << looked.error().message;
      const DatabaseTrouble& trouble = (*looked)->conversations();
      const std::vector<std::string>& named = missing ? trouble.unreadable : trouble.broken;
      ASSERT_EQ(named.size(), 1u) << trouble.reason;
      EXPECT_NE(named[0].find(kTalk), std::string::npos);
      EXPECT_FALSE((*looked)->blocks().any());
    }
    const Renewed done = repair();
    EXPECT_FALSE(done.blocks);
    // Under a damaged value the one that was written first is still there.
    EXPECT_EQ(done.cut_conversations,
              missing ? std::vector<std::string>{kTalk} : std::vector<std::string>{});
    EXPECT_EQ(done.saved_conversations, 2u);
    expect_talks(missing ? 5 : 12);
    expect_well();
  }
}

// As a drive or a careless hand leaves it.
TEST_P(StoreRepairTest, AFolderInThePlaceOfALogIsABrokenFile) {
  for (const std::string& file :
       {files("conversations", ".log").back(), files("blocks", "MANIFEST").back()}) {
    SCOPED_TRACE(file);
    copy();
    fs::remove(store_ + "/" + file);
    fs::create_directory(store_ + "/" + file);
    repair();
    expect_well();
  }
}

TEST_P(StoreRepairTest, ErasedBlocksStayErased) {
  copy();
  std::vector<EraseItem> items;
  {
    auto editor = open_resting_editor(store_, encryption_, kDiskBytes);
    ASSERT_TRUE(editor.ok()) << editor.error().message;
    ASSERT_TRUE((*editor)->reader().walk([&items](const BlockSight& sight) {
      items.push_back({.hash = sight.record.hash, .position = sight.record.position,
                       .tail = sight.record.tail});
      return true;
    }).ok());
    std::sort(items.begin(), items.end(),
              [](const EraseItem& a, const EraseItem& b) { return a.position > b.position; });
    items.resize(items.size() / 2);
    ASSERT_TRUE((*editor)->erase(items, [](uint64_t) { return true; }).ok());
  }
  fs::remove(store_ + "/blocks/CURRENT");
  const Renewed done = repair();
  EXPECT_LT(done.saved_blocks, kChains * 3);
  auto reader = open_resting_store(store_, encryption_);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  for (const EraseItem& item : items) {
    const auto record = (*reader)->record(item.hash);
    EXPECT_TRUE(record.ok() && !record->has_value());
  }
}

// As a kill leaves it: what was begun is there, and begun anew. (A killed process: change_test.)
TEST_P(StoreRepairTest, ARepairThatEndsInItsMidstIsRunAgain) {
  for (int end_at = 0; end_at < 24; end_at += 4) {
    SCOPED_TRACE(end_at);
    copy();
    fs::remove(store_ + "/blocks/CURRENT");
    fs::remove(store_ + "/conversations/CURRENT");
    {
      auto opened = open();
      ASSERT_TRUE(opened.ok());
      int calls = 0;
      static_cast<void>((*opened)->renew([&](const char*, double) { return calls++ < end_at; }));
    }
    auto opened = open(true);
    ASSERT_TRUE(opened.ok());
    const bool more = (*opened)->blocks().any() || (*opened)->conversations().any();
    opened->reset();
    if (more) repair();
    EXPECT_EQ(expect_well(), kChains * 3);
    EXPECT_FALSE(fs::exists(store_ + "/blocks.new"));
  }
}

TEST_P(StoreRepairTest, ChangingPlacesIsFinishedByTheNextRepair) {
  for (const bool old_there : {true, false}) {
    SCOPED_TRACE(old_there);
    copy();
    // As after a repair: the new one ready, the old one still in its place, or aside already.
    fs::rename(store_ + "/blocks", store_ + "/blocks.ready");
    if (old_there) {
      fs::create_directory(store_ + "/blocks");
      std::ofstream(store_ + "/blocks/CURRENT") << "rubbish\n";
    }
    const Renewed done = repair();
    EXPECT_EQ(done.aside.empty(), !old_there);
    EXPECT_EQ(expect_well(), kChains * 3);
    expect_talks(12);
    const std::vector<TakenAside> aside = list_taken_aside(store_);
    EXPECT_EQ(aside.size(), old_there ? 1u : 0u);
    for (const TakenAside& file : aside) EXPECT_TRUE(*remove_taken_aside(store_, file.file));
    EXPECT_TRUE(list_taken_aside(store_).empty());
    EXPECT_FALSE(fs::exists(taken_aside_folder(store_)));
  }
}

TEST_P(StoreRepairTest, StoppingChangesNothingAndLookingNeither) {
  copy();
  fs::remove(store_ + "/blocks/CURRENT");
  auto opened = open();
  ASSERT_TRUE(opened.ok());
  const Result<Renewed> done = (*opened)->renew([](const char*, double) { return false; });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kCancelled);
  opened->reset();
  EXPECT_TRUE(open(true).ok());
  EXPECT_FALSE(fs::exists(store_ + "/blocks/CURRENT"));
  EXPECT_TRUE(list_taken_aside(store_).empty());
}

TEST_P(StoreRepairTest, ADamagedIdentityIsSaidPlainly) {
  copy();
  flip("IDENTITY", 0.5);
  const auto opened = open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kCorruption);
}

}  // namespace
}  // namespace ember::testing
