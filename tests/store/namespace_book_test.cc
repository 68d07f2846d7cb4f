// Notes of namespaces: written once, bounded, and a damaged one is damage.
#include "store/namespace_book.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/bytes.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

class NamespaceBookTest : public testing::Test {
 protected:
  NamespaceBookTest() {
    name_.bytes[3] = 7;
    entry_.fields = {{"weights", "abc"}, {"layout", "mla"}};
    entry_.model = "demo";
    entry_.tokenizer_digest = digest128(as_bytes("x"));
    entry_.tokenizer_files = [this]() -> Result<NamespaceEntry::Files> {
      ++asked_;
      return NamespaceEntry::Files{{"tokenizer.json.gz", std::string(size_, 't')}};
    };
  }

  std::string note_path() const { return store_ + "/namespaces/" + name_.hex(); }

  TempFolder folder_;
  const std::string store_ = folder_.path();
  NamespaceHash name_;
  NamespaceEntry entry_;
  size_t size_ = 1000;
  int asked_ = 0;
};

TEST_F(NamespaceBookTest, AnAbsentNoteIsEmpty) {
  const Result<NamespaceNote> note = read_namespace_note(store_, name_);
  ASSERT_TRUE(note.ok());
  EXPECT_TRUE(note->fields.empty());
  EXPECT_EQ(note->tokenizer_folder, "");
}

TEST_F(NamespaceBookTest, WhatWasWrittenComesBackAndIsWrittenOnce) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(write_namespace_note(store_, name_, entry_, 1 << 20).ok());
  }
  EXPECT_EQ(asked_, 1);
  NamespaceHash other;
  other.bytes[0] = 1;
  ASSERT_TRUE(write_namespace_note(store_, other, entry_, 1 << 20).ok());
  EXPECT_EQ(asked_, 1) << "one tokenizer for all namespaces of a model";
  const Result<NamespaceNote> note = read_namespace_note(store_, name_);
  ASSERT_TRUE(note.ok());
  EXPECT_EQ(note->fields, entry_.fields);
  EXPECT_EQ(note->model, "demo");
  EXPECT_EQ(fs::file_size(note->tokenizer_folder + "/tokenizer.json.gz"), 1000u);
  EXPECT_EQ(fs::status(note_path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(note->tokenizer_folder).permissions(), fs::perms::owner_all);
}

TEST_F(NamespaceBookTest, ATokenizerThatDoesNotFitIsLeftOut) {
  size_ = 2 << 20;
  EXPECT_EQ(write_namespace_note(store_, name_, entry_, 1 << 20).error().code,
            ErrorCode::kCapacity);
  const Result<NamespaceNote> note = read_namespace_note(store_, name_);
  ASSERT_TRUE(note.ok());
  EXPECT_EQ(note->fields, entry_.fields);
  EXPECT_EQ(note->tokenizer_folder, "");
}

TEST_F(NamespaceBookTest, NotesStopAtTheirShare) {
  entry_.tokenizer_digest = {};
  for (int i = 0; i < 2000; ++i) {
    name_.bytes[0] = static_cast<uint8_t>(i);
    name_.bytes[1] = static_cast<uint8_t>(i >> 8);
    entry_.fields = {{"weights", std::string(2000, 'w')}};
    if (!write_namespace_note(store_, name_, entry_, 1 << 20).ok()) break;
  }
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(store_ + "/namespaces")) {
    bytes += file.file_size();
  }
  EXPECT_LE(bytes, 1u << 20);
  EXPECT_GT(bytes, 1u << 18);
}

TEST_F(NamespaceBookTest, EveryFlippedByteIsDamage) {
  ASSERT_TRUE(write_namespace_note(store_, name_, entry_, 1 << 20).ok());
  std::ifstream file(note_path(), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(file), {}};
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    std::ofstream(note_path(), std::ios::binary) << bad;
    EXPECT_FALSE(read_namespace_note(store_, name_).ok()) << at;
    std::ofstream(note_path(), std::ios::binary) << good.substr(0, at);
    EXPECT_FALSE(read_namespace_note(store_, name_).ok()) << at;
  }
}

TEST_F(NamespaceBookTest, ADamagedNoteIsWrittenAnewAndOneOfAnotherVersionStays) {
  ASSERT_TRUE(write_namespace_note(store_, name_, entry_, 1 << 20).ok());
  std::ofstream(note_path(), std::ios::binary) << "damaged";
  ASSERT_TRUE(write_namespace_note(store_, name_, entry_, 1 << 20).ok());
  EXPECT_EQ(read_namespace_note(store_, name_)->fields, entry_.fields);
  std::string newer;
  append_value(newer, kNamespaceMagic);
  append_value(newer, static_cast<uint16_t>(kNamespaceVersion + 1));
  append_value(newer, checksum64(as_bytes(newer)));
  std::ofstream(note_path(), std::ios::binary) << newer;
  EXPECT_EQ(write_namespace_note(store_, name_, entry_, 1 << 20).error().code,
            ErrorCode::kUnsupported);
  EXPECT_EQ(fs::file_size(note_path()), newer.size());
}

TEST_F(NamespaceBookTest, TheLongestNoteCanBeRead) {
  entry_.fields.clear();
  for (int i = 0; i < 64; ++i) {
    entry_.fields.emplace_back(std::string(3000, 'n'), std::string(3000, 'v'));
  }
  entry_.model = std::string(3000, 'm');
  ASSERT_TRUE(write_namespace_note(store_, name_, entry_, 1 << 20).ok());
  const Result<NamespaceNote> note = read_namespace_note(store_, name_);
  ASSERT_TRUE(note.ok()) << note.error().message;
  EXPECT_EQ(note->fields.size(), 64u);
}

TEST_F(NamespaceBookTest, AnUnfinishedTokenizerIsWrittenAnew) {
  fs::create_directories(store_ + "/namespaces/" + entry_.tokenizer_digest.hex() + ".unfinished");
  ASSERT_TRUE(write_namespace_note(store_, name_, entry_, 1 << 20).ok());
  EXPECT_NE(read_namespace_note(store_, name_)->tokenizer_folder, "");
}

}  // namespace
}  // namespace ember
