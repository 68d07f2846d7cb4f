// Forget: what a scope left is unreadable at once, gone from every file when asked; others stay.
#include "store/forget.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// With and without encryption.
class ForgetTest : public ::testing::TestWithParam<bool> {
 protected:
  struct Parts {
    std::unique_ptr<StoreDirectory> directory;
    std::unique_ptr<DiskTier> disk;
    std::unique_ptr<Conversations> turns;
  };

  Parts open() {
    Parts parts;
    auto directory =
        StoreDirectory::open(folder_.sub("store"), {GetParam(), folder_.sub("master.key")});
    EXPECT_TRUE(directory.ok()) << directory.error().message;
    parts.directory = std::move(*directory);
    DiskTierOptions disk = small_tier(folder_.sub("store/blocks"), 64u << 20);
    disk.sealer = parts.directory->sealer();
    parts.disk = open_tier(disk);
    ConversationsOptions turns;
    turns.directory = folder_.sub("store/conversations");
    turns.limit_bytes = 16u << 20;
    turns.sealer = parts.directory->sealer();
    auto opened = Conversations::open(turns);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    parts.turns = std::move(*opened);
    return parts;
  }

  static std::string scope_of(uint64_t id) { return id % 3 == 0 ? "hers" : "his"; }

  // Two tenants' blocks, mixed in the same epochs; a tail and a conversation each.
  void fill(Parts& parts) {
    for (uint64_t id = 0; id < kBlocks; ++id) {
      MadeBlock block = make_block(id, 2, 4096);
      block.record.scope = scope_of(id);
      block.record.parent = made_hash(1'000'000 + id);
      block.record.tokens.resize(64, static_cast<TokenId>(0x41424300 + static_cast<int>(id)));
      ASSERT_TRUE(parts.disk->put(block.record, block.payloads).ok());
      if (id % 8 == 7) {
        ASSERT_TRUE(parts.disk->flush().ok());
      }
      blocks_.push_back(std::move(block));
    }
    for (uint64_t id : {kBlocks, kBlocks + 1}) {
      MadeBlock tail = make_block(id, 1, 1024);
      tail.record.scope = scope_of(id);
      tail.record.parent = made_hash(2'000'000 + id);
      ASSERT_TRUE(parts.turns->put_tail(tail.record, tail.payloads, true).ok());
      Conversation said;
      said.id = id % 3 == 0 ? "00000000000000aa" : "00000000000000bb";
      said.scope = scope_of(id);
      said.system = "Instructions of " + scope_of(id) + " own";
      ASSERT_TRUE(parts.turns->put_head(said).ok());
      Turn turn;
      turn.user = "What " + scope_of(id) + " question was";
      turn.prompt.assign(9, static_cast<TokenId>(0x44454600 + static_cast<int>(id)));
      ASSERT_TRUE(parts.turns->put_turn(said.id, 0, turn).ok());
    }
    ASSERT_TRUE(parts.disk->flush().ok());
  }

  // What of her blocks and words can be found in the files; hashes if asked for, since RocksDB's
  // manifest names some until it is written anew, with the next opening.
  size_t traces(bool hashes) const {
    std::string all;
    for (const std::string& path : files_below(folder_.sub("store"))) all += read_file(path);
    size_t found = 0;
    const auto look = [&](std::string_view needle) {
      if (all.find(needle) != std::string::npos) ++found;
    };
    for (const MadeBlock& block : blocks_) {
      if (block.record.scope != "hers") continue;
      look(std::string_view(block.payloads[0]).substr(1000, 32));
      look(std::string_view(reinterpret_cast<const char*>(block.record.tokens.data() + 60), 16));
      if (hashes) look(block.record.hash.view());
    }
    look("What hers question was");
    look("Instructions of hers own");
    return found;
  }

  void expect_his_only(Parts& parts) {
    auto listing = parts.disk->list();
    ASSERT_TRUE(listing.ok());
    EXPECT_EQ(listing->unreadable, 0u);
    std::set<BlockHash> there;
    for (const auto& [record, touch] : listing->records) {
      EXPECT_EQ(record.scope, "his");
      there.insert(record.hash);
    }
    for (const MadeBlock& block : blocks_) {
      EXPECT_EQ(there.contains(block.record.hash), block.record.scope == "his");
      if (block.record.scope == "his") {
        auto record = parts.disk->read_record(block.record.hash);
        ASSERT_TRUE(record.ok() && record->has_value());
        EXPECT_EQ(read_error(*parts.disk, **record, block), "");
      } else if (GetParam()) {
        // Even for whoever has kept the record.
        EXPECT_NE(read_error(*parts.disk, block.record, block), "");
      }
    }
    EXPECT_EQ(parts.turns->list_tails()->records.size(), 1u);
    EXPECT_EQ(parts.turns->list()->size(), 1u);
    EXPECT_TRUE(parts.turns->load("00000000000000bb").ok());
    EXPECT_FALSE(parts.turns->load("00000000000000aa").ok());
  }

  Result<ForgetReport> forget(Parts& parts, const ForgetRequest& request) {
    return forget_scope(parts.directory.get(), *parts.disk, parts.turns.get(), request);
  }

  static constexpr uint64_t kBlocks = 24;
  ScratchFolder folder_;
  std::vector<MadeBlock> blocks_;
};

TEST_P(ForgetTest, ScopeIsUnreadableAtOnceAndOthersStay) {
  Parts parts = open();
  fill(parts);
  ForgetRequest request;
  request.scope = "hers";
  request.dry_run = true;
  for (bool dry_run : {true, false}) {
    request.dry_run = dry_run;
    auto report = forget(parts, request);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->blocks, 8u);
    EXPECT_EQ(report->blocks_below, 0u);
    EXPECT_EQ(report->tails, 1u);
    EXPECT_EQ(report->conversations, 1u);
    EXPECT_GT(report->stored_bytes, 0u);
    EXPECT_EQ(report->keys, GetParam() && !dry_run ? 1u : 0u);
    EXPECT_FALSE(report->bytes_gone);
  }
  expect_his_only(parts);
  parts = {};
  parts = open();
  expect_his_only(parts);
  EXPECT_EQ(forget(parts, request)->blocks, 0u);
}

TEST_P(ForgetTest, NowLeavesNoByteInAnyFile) {
  Parts parts = open();
  fill(parts);
  EXPECT_EQ(traces(true), GetParam() ? 8u : 26u);
  ForgetRequest request;
  request.scope = "hers";
  request.now = true;
  auto report = forget(parts, request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->bytes_gone) << report->reason;
  EXPECT_EQ(traces(false), 0u);
  expect_his_only(parts);
  parts = {};
  parts = open();
  EXPECT_EQ(traces(true), 0u);
  expect_his_only(parts);
}

TEST_P(ForgetTest, AllLeavesNothingReadable) {
  Parts parts = open();
  fill(parts);
  ForgetRequest request;
  request.all = true;
  auto report = forget(parts, request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->blocks, kBlocks);
  EXPECT_EQ(report->keys, GetParam() ? 2u : 0u);
  parts = {};
  parts = open();
  EXPECT_TRUE(parts.disk->list()->records.empty());
  EXPECT_TRUE(parts.turns->list()->empty());
  // And the store goes on being one.
  MadeBlock block = make_block(500, 2, 4096);
  ASSERT_TRUE(parts.disk->put(block.record, block.payloads).ok());
  EXPECT_EQ(read_error(*parts.disk, block.record, block), "");
}

TEST_P(ForgetTest, WhatHangsBelowGoesToo) {
  Parts parts = open();
  for (uint64_t id = 0; id < 6; ++id) {
    MadeBlock block = make_block(id, 1, 1024);
    block.record.scope = id < 3 ? "shared" : "his";
    block.record.parent = made_hash(id == 0 ? 999 : id - 1);
    ASSERT_TRUE(parts.disk->put(block.record, block.payloads).ok());
  }
  ForgetRequest request;
  request.scope = "shared";
  auto report = forget(parts, request);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->blocks, 3u);
  EXPECT_EQ(report->blocks_below, 3u);
  EXPECT_TRUE(parts.disk->list()->records.empty());
}

// A process that ended between destroying the key and erasing the rows.
TEST_P(ForgetTest, RowsOfADestroyedKeyAreErasedByTheNextProcess) {
  if (!GetParam()) return;
  Parts parts = open();
  fill(parts);
  ASSERT_TRUE(*parts.directory->destroy_key("hers"));
  parts = {};
  parts = open();
  auto listing = parts.disk->list();
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->records.size(), kBlocks - 8);
  EXPECT_EQ(listing->unreadable, 0u);
  expect_his_only(parts);
  ASSERT_TRUE(parts.disk->flush().ok());
  EXPECT_EQ(parts.disk->list()->forgotten, 0u);
}

INSTANTIATE_TEST_SUITE_P(Form, ForgetTest, ::testing::Bool(),
                         [](const auto& form) { return form.param ? "Encrypted" : "Clear"; });

}  // namespace
}  // namespace ember
