// A small store of blocks and conversations in which one byte is changed: whatever the byte,
// opening fails cleanly or every read gives the right bytes or an error.
#pragma once

#include <fstream>
#include <iterator>
#include <map>

#include "store/conversations.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {

class DamageRun {
 public:
  DamageRun() : scratch_(folder_.sub("copy")) {
    build_blocks();
    build_conversations();
  }

  // The files of the three databases, whole, by path relative to the run's folder.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : content_) names.push_back(name);
    return names;
  }
  size_t size_of(const std::string& name) const { return content_.at(name).size(); }

  // Changes one byte of one file, opens and reads everything, and takes the change back: opening
  // for reading changes no file. `writing`: then the same opened for writing, on a copy.
  void flip(const std::string& name, size_t at, uint8_t mask, bool writing) {
    SCOPED_TRACE(name + " byte " + std::to_string(at) + " mask " + std::to_string(mask));
    const std::string database = name.substr(0, name.find('/'));
    change_in_place(name, at, mask);
    check(database, folder_.sub(database), true);
    change_in_place(name, at, mask);
    if (!writing) return;
    std::filesystem::remove_all(scratch_);
    std::filesystem::create_directory(scratch_);
    for (const auto& [other, bytes] : content_) {
      if (other.substr(0, other.find('/')) != database) continue;
      std::string changed = bytes;
      if (other == name) changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(mask));
      std::ofstream(scratch_ + other.substr(database.size()), std::ios::binary) << changed;
    }
    check(database, scratch_, false);
  }
  uint64_t refused() const { return refused_; }  // openings that failed cleanly
  uint64_t errors() const { return errors_; }    // reads that failed cleanly

 private:
  static constexpr uint64_t kBlocks = 6;
  static constexpr uint32_t kTurns = 4;
  static constexpr const char* kId = "00112233445566aa";

  static ConversationsOptions conversation_options(const std::string& directory) {
    ConversationsOptions options;
    options.directory = directory;
    options.limit_bytes = 8u << 20;
    options.memtable_bytes = 1u << 20;
    return options;
  }
  static Turn turn(uint32_t index) {
    Turn turn;
    turn.user = "question " + std::to_string(index);
    turn.answer.assign(20, static_cast<TokenId>(index));
    return turn;
  }

  void keep(const std::string& database) {
    for (const std::string& file : files_below(folder_.sub(database))) {
      std::ifstream in(file, std::ios::binary);
      std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      content_[database + "/" + std::filesystem::path(file).filename().string()] = bytes;
    }
  }

  void build_blocks() {
    auto tier = open_tier(small_tier(folder_.sub("blocks"), 16u << 20));
    for (uint64_t id = 0; id < kBlocks; ++id) {
      blocks_.push_back(make_block(id, 2, 3000));
      ASSERT_TRUE(tier->put(blocks_[id].record, blocks_[id].payloads).ok());
      if (id % 2 == 1) {
        ASSERT_TRUE(tier->flush().ok());
      }
    }
    tier.reset();
    keep("blocks");
  }

  // Twice: with all of it in the log, and with all of it in tables.
  void build_conversations() {
    for (const char* name : {"log", "tables"}) {
      auto options = conversation_options(folder_.sub(name));
      {
        auto opened = Conversations::open(options);
        ASSERT_TRUE(opened.ok()) << opened.error().message;
        std::unique_ptr<Conversations> conversations = std::move(*opened);
        Conversation head;
        head.id = kId;
        head.system = "a system prompt";
        ASSERT_TRUE(conversations->put_head(head).ok());
        for (uint32_t i = 0; i < kTurns; ++i) {
          ASSERT_TRUE(conversations->put_turn(kId, i, turn(i)).ok());
        }
        ASSERT_TRUE(conversations->put_tail(blocks_[0].record, blocks_[0].payloads, true).ok());
      }
      if (std::string(name) == "tables") {
        ASSERT_TRUE(Conversations::open(options).ok());
      }
      keep(name);
    }
  }

  void change_in_place(const std::string& name, size_t at, uint8_t mask) {
    std::fstream file(folder_.sub(name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ static_cast<char>(mask)));
    ASSERT_TRUE(file.good()) << name;
  }

  void check(const std::string& database, const std::string& path, bool read_only) {
    if (database == "blocks") {
      check_blocks(path, read_only);
    } else {
      check_conversations(path, read_only);
    }
  }

  static bool clean(const Error& error) {
    return error.code == ErrorCode::kCorruption || error.code == ErrorCode::kIo ||
           error.code == ErrorCode::kUnsupported;
  }

  void check_blocks(const std::string& path, bool read_only) {
    DiskTierOptions options = small_tier(path, 16u << 20);
    options.read_only = read_only;
    auto opened = DiskTier::open(options);
    if (!opened.ok()) {
      ++refused_;
      EXPECT_TRUE(clean(opened.error())) << opened.error().message;
      return;
    }
    DiskTier& tier = **opened;
    auto listing = tier.list();
    if (listing.ok()) {
      for (auto& [record, touch] : listing->records) {
        ASSERT_LT(record.position, kBlocks);
        EXPECT_EQ(record, blocks_[record.position].record);
      }
    }
    for (const MadeBlock& block : blocks_) {
      if (!read_error(tier, block.record, block).empty()) ++errors_;
    }
    EXPECT_TRUE(tier.verify_files().ok());
    if (read_only) return;
    MadeBlock more = make_block(kBlocks, 2, 3000);
    bool stored = tier.put(more.record, more.payloads).ok() && tier.flush().ok();
    if (stored) {
      EXPECT_EQ(read_error(tier, more.record, more), "");
    }
  }

  void check_conversations(const std::string& path, bool read_only) {
    ConversationsOptions options = conversation_options(path);
    options.read_only = read_only;
    auto opened = Conversations::open(options);
    if (!opened.ok()) {
      ++refused_;
      EXPECT_TRUE(clean(opened.error())) << opened.error().message;
      return;
    }
    auto loaded = (*opened)->load(kId);
    if (loaded.ok()) {
      ASSERT_EQ(loaded->turns.size(), kTurns) << "turns were silently forgotten";
      for (uint32_t i = 0; i < kTurns; ++i) {
        EXPECT_EQ(loaded->turns[i].user, turn(i).user);
        EXPECT_EQ(loaded->turns[i].answer, turn(i).answer);
      }
    } else {
      ++errors_;
      EXPECT_TRUE(clean(loaded.error())) << loaded.error().message;
    }
    static_cast<void>((*opened)->list().ok());
    auto tails = (*opened)->list_tails();
    if (tails.ok()) {
      EXPECT_EQ(tails->records.size() + tails->unreadable, 1u);
    }
    std::vector<std::byte> raw(3000);
    if ((*opened)->read_tail_group(blocks_[0].record, 1, raw).ok()) {
      EXPECT_EQ(raw, blocks_[0].raw[1]);
    }
    EXPECT_TRUE((*opened)->verify_files().ok());
  }

  ScratchFolder folder_;
  std::string scratch_;
  std::vector<MadeBlock> blocks_;
  std::map<std::string, std::string> content_;
  uint64_t refused_ = 0;
  uint64_t errors_ = 0;
};

}  // namespace ember
