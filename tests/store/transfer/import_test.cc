// What a real store makes of an export: entered, known, mapped, refused, or too large.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "store/transfer/import.h"
#include "store/transfer/resting_intake.h"
#include "store/transfer/spool.h"
#include "tests/store/transfer/made_transfer.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

constexpr uint64_t kDiskBytes = uint64_t{64} << 20;
const std::map<std::string, std::string> kAcme = {{"acme", "acme"}};

// All that a store holds, in a form that two of them can be compared by.
struct Content {
  std::map<std::string, std::string> blocks;  // scope and tokens from the root on -> latents
  std::map<std::string, std::string> talks;
  friend bool operator==(const Content&, const Content&) = default;
};

class ImportTest : public ::testing::Test {
 protected:
  std::unique_ptr<StoreReader> reader(const std::string& store) {
    Result<std::unique_ptr<StoreReader>> opened = open_resting_store(folder_ / store, {});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }

  Result<ImportReport> import(const std::string& bytes, const std::string& store,
                              std::map<std::string, std::string> scopes = kAcme,
                              uint64_t disk_bytes = kDiskBytes) {
    const bool there = std::filesystem::exists(folder_ / store);
    const std::unique_ptr<StoreReader> known = there ? reader(store) : nullptr;
    Importer importer({.scopes = std::move(scopes), .check_tokenizer = {}, .progress = {}},
                      known.get());
    EMBER_ASSIGN(const ImportReport plan, importer.prove(source_of(bytes, 4096)));
    EMBER_ASSIGN(const std::unique_ptr<RestingIntake> intake,
                 RestingIntake::open(folder_ / store, disk_bytes, {}));
    EMBER_TRY(intake->reserve(plan.fresh.stored_bytes));
    EMBER_ASSIGN(const ImportReport entered, importer.enter(source_of(bytes, 4096), *intake));
    EXPECT_EQ(entered.fresh.tails, plan.fresh.tails);
    EXPECT_EQ(entered.fresh.conversations, plan.fresh.conversations);
    return entered;
  }

  Content content(const std::string& store) {
    const std::unique_ptr<StoreReader> from = reader(store);
    std::map<BlockHash, BlockRecord> records;
    const auto walked = from->walk([&records](const BlockSight& sight) {
      records.emplace(sight.record.hash, sight.record);
      return true;
    });
    EXPECT_TRUE(walked.ok() && walked->unreadable == 0);
    Content found;
    for (const auto& [hash, record] : records) {
      const BlockHasher hasher(from->secret(), record.name_space, record.scope);
      EXPECT_EQ(hasher.next(record.parent, record.tokens), hash);
      std::string path;
      for (const BlockRecord* at = &record; at != nullptr;) {
        std::string block = at->scope + ":";
        for (const TokenId token : at->tokens) block += std::to_string(token) + ",";
        path = block + path;
        const auto above = records.find(at->parent);
        EXPECT_EQ(above == records.end(), at->position == 0) << "a block without its parent";
        at = above == records.end() ? nullptr : &above->second;
      }
      std::string latents;
      for (uint32_t group = 0; group < record.groups.size(); ++group) {
        std::string raw(record.groups[group].raw_bytes, '\0');
        EXPECT_TRUE(
            from->read_group(record, group, std::as_writable_bytes(std::span<char>(raw))).ok());
        latents += raw;
      }
      found.blocks[path] = latents;
    }
    const auto heads = from->conversations().list();
    EXPECT_TRUE(heads.ok());
    for (const Conversation& head : *heads) {
      const Result<Conversation> whole = from->conversations().load(head.id);
      EXPECT_TRUE(whole.ok());
      found.talks[head.id] = encode_conversation_entry(*whole);
    }
    return found;
  }

  TempFolder folder_;
};

TEST_F(ImportTest, TwoStoresMadeOfOneExportHoldTheSameUnderOtherNames) {
  const std::string bytes = written(made_transfer(1, 40));
  const Result<ImportReport> first = import(bytes, "first");
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->fresh.blocks + first->fresh.tails, 40u);
  ASSERT_TRUE(import(bytes, "second").ok());
  EXPECT_EQ(content("first"), content("second"));
  EXPECT_EQ(content("first").blocks.size(), 40u);
  EXPECT_EQ(content("first").talks.size(), 2u);
  EXPECT_NE(reader("first")->secret(), reader("second")->secret());
  const Result<ImportReport> again = import(bytes, "first");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->fresh, IntakeCounts{});
  EXPECT_EQ(again->known.blocks + again->known.tails, 40u);
  EXPECT_EQ(again->known.conversations, 2u);
  const MadeTransfer made = made_transfer(1, 40);
  const auto note = reader("first")->name_space(made.manifest.name_spaces[0].name);
  ASSERT_TRUE(note.ok());
  EXPECT_EQ(note->fields, made.manifest.name_spaces[0].fields);
  EXPECT_EQ(read_file(note->tokenizer_folder + "/tokenizer_config.json"), "{}");
}

TEST_F(ImportTest, OtherLatentsOfAKnownBlockStayOutAndAreCounted) {
  MadeTransfer made = made_transfer(1, 10);
  ASSERT_TRUE(import(written(made), "store").ok());
  const Content before = content("store");
  Prng prng(99);
  for (TransferItem& item : made.items) {
    if (item.number != 1) continue;
    const TransferItem other = made_block(prng, item.record.name_space, item.record.scope, 0,
                                          item.record.tokens.size());
    item.record.groups = other.record.groups;
    item.payloads = other.payloads;
  }
  const std::unique_ptr<StoreReader> known = reader("store");
  Importer importer({.scopes = kAcme, .check_tokenizer = {}, .progress = {}}, known.get());
  const std::string bytes = written(made);
  const Result<ImportReport> plan = importer.prove(source_of(bytes, 4096));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->differing, 1u);
  ASSERT_TRUE(import(bytes, "store").ok());
  EXPECT_EQ(content("store"), before);
}

TEST_F(ImportTest, ScopesAreMappedAndAChainStillGoesOneWay) {
  const std::string bytes = written(made_transfer(3, 40));
  const auto unmapped = import(bytes, "store", {});
  ASSERT_FALSE(unmapped.ok());
  EXPECT_NE(unmapped.error().message.find("acme"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store"));
  ASSERT_TRUE(import(bytes, "one", {{"acme", "shared"}}).ok());
  for (const auto& [path, latents] : content("one").blocks) {
    EXPECT_EQ(path.find("acme"), std::string::npos);
  }
  ASSERT_TRUE(import(bytes, "two", {{"acme", "beta"}, {"shared", "beta"}}).ok());
  EXPECT_EQ(content("two").blocks.size(), content("one").blocks.size());
  const auto back = import(bytes, "three", {{"acme", "shared"}, {"shared", "beta"}});
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.error().message.find("from shared to one tenant"), std::string::npos);
}

TEST_F(ImportTest, WhatDoesNotFitIsRefusedBeforeAnythingIsEntered) {
  ASSERT_TRUE(import(written(made_transfer(1, 10)), "store").ok());
  const Content before = content("store");
  {
    const auto intake = RestingIntake::open(folder_ / "store", kDiskBytes, {});
    ASSERT_TRUE(intake.ok());
    const Status reserved = (*intake)->reserve(kDiskBytes);
    ASSERT_FALSE(reserved.ok());
    EXPECT_EQ(reserved.error().code, ErrorCode::kCapacity) << reserved.error().message;
  }
  EXPECT_EQ(content("store"), before);
  ASSERT_TRUE(import(written(made_transfer(2, 10)), "store").ok());
}

TEST_F(ImportTest, AnImportThatFailsInItsMidstTakesBackTheStoreThatItMade) {
  const std::string bytes = written(made_transfer(1, 10));
  Importer importer({.scopes = kAcme, .check_tokenizer = {}, .progress = {}}, nullptr);
  ASSERT_TRUE(importer.prove(source_of(bytes, 4096)).ok());
  {
    const auto intake = RestingIntake::open(folder_ / "store", kDiskBytes, {});
    ASSERT_TRUE(intake.ok());
    const std::string other = written(made_transfer(2, 10));
    const auto entered = importer.enter(source_of(other, 4096), **intake);
    ASSERT_FALSE(entered.ok());
    EXPECT_NE(entered.error().message.find("changed"), std::string::npos);
    (*intake)->take_back();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store"));
}

// Killed in the midst of entering, at the k-th item.
void import_and_die(const std::string& store, const std::string& bytes, uint64_t k) {
  bool entering = false;
  Importer importer({.scopes = kAcme,
                     .check_tokenizer = {},
                     .progress =
                         [&entering, k](uint64_t done, uint64_t) {
                           if (entering && done == k) ::raise(SIGKILL);
                           return true;
                         }},
                    nullptr);
  if (!importer.prove(source_of(bytes, 4096)).ok()) return;
  const auto intake = RestingIntake::open(store, kDiskBytes, {});
  if (!intake.ok()) return;
  entering = true;
  static_cast<void>(importer.enter(source_of(bytes, 4096), **intake));
}

TEST_F(ImportTest, KilledInItsMidstItLeavesAWholeStore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The child runs this test again from its beginning, and must find the parent's folder.
  ::setenv("EMBER_IMPORT_FOLDER", folder_.path().c_str(), 0);
  const std::string folder = std::getenv("EMBER_IMPORT_FOLDER");
  const std::string bytes = written(made_transfer(7, 30));
  for (const uint64_t k : {1u, 9u, 25u, 32u}) {
    const std::string store = folder + "/store" + std::to_string(k);
    EXPECT_EXIT(import_and_die(store, bytes, k), ::testing::KilledBySignal(SIGKILL), "");
  }
  ::unsetenv("EMBER_IMPORT_FOLDER");
  ASSERT_TRUE(import(bytes, "whole").ok());
  const Content whole = content("whole");
  for (const char* store : {"store1", "store9", "store25", "store32"}) {
    for (const auto& [path, latents] : content(store).blocks) {
      ASSERT_TRUE(whole.blocks.contains(path));
      EXPECT_EQ(whole.blocks.at(path), latents);
    }
    const Result<ImportReport> again = import(bytes, store);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(content(store), whole);
  }
}

// Whatever is done to the bytes: refused with the store as it was, or whole in what came.
TEST_F(ImportTest, DamagedExportsNeverLeaveAStoreWrong) {
  ASSERT_TRUE(import(written(made_transfer(1, 8)), "store").ok());
  Content before = content("store");
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Prng prng(seed);
    Entries entries = entries_of(written(made_transfer(2 + seed % 5, 8)));
    std::string& body = entries[prng.below(entries.size())].second;
    for (uint64_t n = prng.below(3); n > 0 && !body.empty(); --n) {
      body[prng.below(body.size())] ^= static_cast<char>(1 + prng.below(255));
    }
    if (prng.below(3) == 0) std::swap(entries[prng.below(entries.size())], entries[1]);
    const auto imported =
        import(prng.below(2) == 0 ? sealed(entries) : tar_of(entries), "store");
    const Content after = content("store");
    if (imported.ok()) {
      EXPECT_GE(after.blocks.size(), before.blocks.size());
      for (const auto& [path, latents] : before.blocks) EXPECT_EQ(after.blocks.at(path), latents);
    } else {
      ++refused;
      EXPECT_EQ(after, before) << seed << ": " << imported.error().message;
    }
    before = after;
  }
  EXPECT_GT(refused, 6u);
  EXPECT_LT(refused, 24u);
}

TEST_F(ImportTest, ASpoolGivesBackWhatItTookAndLeavesNoName) {
  Prng prng(4);
  std::string bytes(1'000'003, '\0');
  for (char& c : bytes) c = static_cast<char>(prng());
  const auto spool = Spool::make(folder_.path(), bytes.size());
  ASSERT_TRUE(spool.ok()) << spool.error().message;
  for (size_t at = 0; at < bytes.size();) {
    const size_t piece = std::min<size_t>(1 + prng.below(300'000), bytes.size() - at);
    ASSERT_TRUE((*spool)->write(std::string_view(bytes).substr(at, piece)).ok());
    at += piece;
  }
  EXPECT_EQ((*spool)->write("x").error().code, ErrorCode::kCapacity);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  ASSERT_TRUE((*spool)->begin_reading().ok());
  std::string back;
  std::string piece(100'000, '\0');
  while (true) {
    const auto got = (*spool)->read(piece.data(), 1 + prng.below(piece.size()));
    ASSERT_TRUE(got.ok());
    if (*got == 0) break;
    back.append(piece.data(), *got);
  }
  EXPECT_EQ(back, bytes);
}

}  // namespace
}  // namespace ember::testing
