// An export read back, and hostile ones that are right in all but one thing.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/store/transfer/made_transfer.h"

namespace ember::testing {
namespace {

constexpr uint64_t kSeed = 11;

std::string refusal(const std::string& bytes) {
  const Result<Read> read = read_all(bytes);
  return read.ok() ? "" : read.error().message;
}

// For its own fault: not because what it was sealed with is missed.
bool refused_for_itself(const std::string& bytes) {
  const std::string why = refusal(bytes);
  return !why.empty() && why.find("its sums") == std::string::npos;
}

// The export with one entry's body or name changed, and an end that fits it.
std::string with(const std::function<void(Entries&)>& change) {
  Entries entries = entries_of(written(made_transfer(kSeed)));
  change(entries);
  return sealed(std::move(entries));
}

std::pair<std::string, std::string>& entry(Entries& entries, const std::string& name) {
  for (auto& one : entries) {
    if (one.first == name) return one;
  }
  ADD_FAILURE() << "no entry " << name;
  return entries[0];
}

// The export with one block made anew by `change`.
std::string with_block(const std::function<void(BlockRecord&, std::vector<std::string>&)>& change,
                       uint64_t number = 1) {
  return with([&](Entries& entries) {
    auto& body = entry(entries, block_entry_name(number)).second;
    Result<BlockEntry> block = decode_block_entry(body);
    ASSERT_TRUE(block.ok());
    std::vector<std::string> payloads(block->payloads.begin(), block->payloads.end());
    change(block->record, payloads);
    body = encode_block_entry(block->record, payloads);
  });
}

std::string with_text(const std::string& from, const std::string& to) {
  return with([&](Entries& entries) {
    std::string& text = entry(entries, std::string(kManifestName)).second;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  });
}

TEST(TransferTest, WhatWasWrittenIsReadInPiecesOfAnySize) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const MadeTransfer made = made_transfer(seed, 20);
    const std::string bytes = written(made);
    for (const size_t most : {1u, 511u, 4096u, 1u << 20}) {
      const Result<Read> read = read_all(bytes, most);
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_TRUE(same(made, *read)) << seed << " in pieces of " << most;
    }
    EXPECT_EQ(sealed(entries_of(bytes)).size(), bytes.size());
  }
}

TEST(TransferTest, NothingOfTheSourcesHashesTravels) {
  MadeTransfer made = made_transfer(kSeed);
  for (TransferItem& item : made.items) {
    item.record.hash.bytes.fill(0xa5);
    item.record.parent.bytes.fill(0xa5);
    item.record.publisher = "publisher-of-the-source";
    item.record.epoch = 77;
  }
  const std::string bytes = written(made);
  EXPECT_EQ(bytes.find(std::string(16, '\xa5')), std::string::npos);
  EXPECT_EQ(bytes.find("publisher-of"), std::string::npos);
  EXPECT_EQ(refusal(bytes), "");
}

TEST(TransferTest, CutAnywhereItIsRefused) {
  const std::string bytes = written(made_transfer(kSeed, 3));
  // Behind the last body only the zeros of the tar's end are missing, which say nothing.
  const size_t whole = bytes.size() - 1024;
  for (size_t size = 0; size < whole; size += 97) {
    EXPECT_NE(refusal(bytes.substr(0, size)), "") << size;
  }
}

TEST(TransferTest, WhatFollowsTheEndIsRefusedButForZeros) {
  const std::string bytes = written(made_transfer(kSeed));
  EXPECT_EQ(refusal(bytes + std::string(10240, '\0')), "");
  EXPECT_NE(refusal(bytes + "x"), "");
  EXPECT_NE(refusal(bytes + std::string(10240, '\0') + "x"), "");
  EXPECT_NE(refusal(bytes + std::string(size_t{2} << 20, '\0')), "");
  EXPECT_NE(refusal(bytes + bytes), "");
}

TEST(TransferTest, AnotherVersionIsRefusedByItsNumber) {
  EXPECT_NE(refusal(with_text("\"version\": 1", "\"version\": 2")).find("version 2"),
            std::string::npos);
}

TEST(TransferTest, AManifestThatIsNotAsItMustBeIsRefused) {
  EXPECT_TRUE(refused_for_itself(with_text("\"layers\": 3", "\"layers\": 4")));
  EXPECT_TRUE(refused_for_itself(with_text("\"layers\": 3", "\"layers\": 0")));
  EXPECT_TRUE(refused_for_itself(with_text("\"layers\": 3", "\"layers\": -3")));
  EXPECT_TRUE(refused_for_itself(with_text("\"layers\": 3", "\"layers\": 4000000000")));
  EXPECT_TRUE(refused_for_itself(with_text("\"row_values\": 16", "\"row_values\": 1048576")));
  EXPECT_TRUE(refused_for_itself(with_text("\"0123\"", "\"0124\"")));
  EXPECT_TRUE(refused_for_itself(with_text("\"acme\"", "\"shared\"")));
  EXPECT_TRUE(refused_for_itself(with_text("\"acme\"", "\"ac\\u0000me\"")));
  EXPECT_TRUE(refused_for_itself(with_text("emberkv-transfer", "emberkv-elsewhere")));
  EXPECT_TRUE(refused_for_itself(with_text("tokenizer.json.gz", "../../../etc/passwd")));
  EXPECT_TRUE(refused_for_itself(with_text("\"scopes\"", "\"slopes\"")));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_NE(refusal(with_text("\"0.1.0\"", deep)).find("too deep"), std::string::npos);
  EXPECT_TRUE(refused_for_itself(with_text("\"0.1.0\"", "\"" + std::string(2u << 20, 'x') + "\"")));
  EXPECT_TRUE(refused_for_itself(with_text("\"0.1.0\"", "\"\xff\xfe\"")));
}

TEST(TransferTest, ABlockThatCannotBeIsRefused) {
  using Payloads = std::vector<std::string>;
  const std::vector<std::function<void(BlockRecord&, Payloads&)>> changes = {
      [](BlockRecord& record, Payloads&) { record.tokens[0] = -1; },
      [](BlockRecord& record, Payloads&) { record.tokens[0] = kMostTokenId + 1; },
      [](BlockRecord& record, Payloads&) { record.position = 1; },
      [](BlockRecord& record, Payloads&) { record.parent = numbered(1); },
      [](BlockRecord& record, Payloads&) { record.parent = numbered(900); },
      [](BlockRecord& record, Payloads&) { record.parent.bytes[12] = 1; },
      [](BlockRecord& record, Payloads&) { record.hash = numbered(2); },
      [](BlockRecord& record, Payloads&) { record.epoch = 1; },
      [](BlockRecord& record, Payloads&) { record.publisher = "x"; },
      [](BlockRecord& record, Payloads&) { record.scope = "stranger"; },
      [](BlockRecord& record, Payloads&) { record.name_space.bytes[0] ^= 1; },
      [](BlockRecord& record, Payloads&) { record.tail = !record.tail; },
      [](BlockRecord& record, Payloads&) { record.tokens.push_back(1); },
      [](BlockRecord& record, Payloads&) { record.streams[0].row_values = 8; },
      [](BlockRecord& record, Payloads&) { record.streams.clear(); },
      [](BlockRecord& record, Payloads&) { record.groups[1].checksum ^= 1; },
      [](BlockRecord& record, Payloads&) { record.groups[1].raw_bytes *= 2; },
      [](BlockRecord& record, Payloads&) { record.groups[1].codec = static_cast<CodecId>(1); },
      [](BlockRecord& record, Payloads&) { std::swap(record.groups[0], record.groups[1]); },
      [](BlockRecord& record, Payloads& payloads) {
        record.groups.pop_back();
        payloads.pop_back();
      },
      [](BlockRecord& record, Payloads& payloads) {
        payloads[0] = "short";
        record.groups[0].stored_bytes = 5;
      },
      [](BlockRecord& record, Payloads& payloads) {
        payloads[0].append(1000, 'x');
        record.groups[0].stored_bytes += 1000;
      },
      [](BlockRecord&, Payloads& payloads) { payloads[0].pop_back(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_TRUE(refused_for_itself(with_block(changes[i]))) << "change " << i;
  }
}

TEST(TransferTest, LatentsThatAreNoNumbersAreRefused) {
  const std::string bytes = with_block([](BlockRecord& record, std::vector<std::string>& payloads) {
    GroupEntry& group = record.groups[2];
    std::string raw(group.raw_bytes, '\0');
    const uint16_t nan = 0x7fc0;
    std::memcpy(raw.data() + 20, &nan, sizeof nan);
    group.codec = CodecId::kStored;
    group.stored_bytes = group.raw_bytes;
    group.checksum = checksum64(as_bytes(raw));
    payloads[2] = raw;
  });
  EXPECT_NE(refusal(bytes).find("no numbers"), std::string::npos) << refusal(bytes);
}

// A payload names its own channels and tokens: wrong ones would have the decoder take 64 times
// the memory of the group.
TEST(TransferTest, APayloadOfAnotherShapeIsRefusedBeforeItIsDecoded) {
  Prng prng(5);
  const MadeTransfer made = made_transfer(kSeed);
  const std::string bytes = with_block([](BlockRecord& record, std::vector<std::string>& payloads) {
    GroupEntry& group = record.groups[0];
    group.codec = CodecId::kChannelPlanes;
    payloads[0].assign(group.raw_bytes - 1, '\0');
    const uint32_t channels = group.raw_bytes / 2;
    const uint32_t tokens = 1;
    std::memcpy(payloads[0].data(), &channels, 4);
    std::memcpy(payloads[0].data() + 4, &tokens, 4);
    group.stored_bytes = static_cast<uint32_t>(payloads[0].size());
  });
  EXPECT_NE(refusal(bytes).find("another layout"), std::string::npos) << refusal(bytes);
}

TEST(TransferTest, AChainNeverComesBackToShared) {
  Prng prng(3);
  MadeTransfer made = made_transfer(kSeed, 0);
  const NamespaceHash name = made.manifest.name_spaces[0].name;
  const auto put = [&](const char* scope, uint32_t position, uint64_t number, uint64_t parent,
                       size_t tokens) {
    TransferItem item = made_block(prng, name, scope, position, tokens);
    item.number = number;
    item.parent = parent;
    made.items.insert(made.items.end() - 2, item);
  };
  put("shared", 0, 1, 0, 8);
  put("acme", 1, 2, 1, 8);
  EXPECT_EQ(refusal(written(made)), "");
  const MadeTransfer right = made;
  put("shared", 2, 3, 2, 8);
  EXPECT_NE(refusal(written(made)).find("cannot follow"), std::string::npos);
  made = right;
  put("acme", 2, 3, 2, 3);
  EXPECT_EQ(refusal(written(made)), "");
  put("acme", 3, 4, 3, 8);
  EXPECT_NE(refusal(written(made)).find("cannot follow"), std::string::npos) << "below a tail";
  made = right;
  put("acme", 3, 3, 2, 8);
  EXPECT_NE(refusal(written(made)).find("cannot follow"), std::string::npos) << "a gap";
}

TEST(TransferTest, EntriesOutOfTheirOrderOrOfOtherNamesAreRefused) {
  const Entries whole = entries_of(written(made_transfer(kSeed)));
  for (size_t i = 0; i < whole.size(); ++i) {
    Entries entries = whole;
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
    // The last conversation alone is missed by nobody but the counts, which `sealed` makes anew.
    const bool conversation = whole[i].first.rfind("conversations/", 0) == 0;
    const bool last_block = whole[i].first == block_entry_name(12);
    if (!conversation && !last_block) {
      EXPECT_NE(refusal(sealed(entries)), "") << whole[i].first;
    }
    entries = whole;
    entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(i), whole[i]);
    EXPECT_NE(refusal(tar_of(entries)), "") << whole[i].first << " twice";
    EXPECT_NE(refusal(sealed(entries)), "") << whole[i].first << " twice";
    if (i + 1 < whole.size()) {
      entries = whole;
      std::swap(entries[i], entries[i + 1]);
      EXPECT_NE(refusal(tar_of(entries)), "") << whole[i].first << " later";
    }
    for (const char* name : {"../escape", "/etc/passwd", "blocks/../../x", "blocks/1", "x",
                             "conversations/../x", "conversations/zz", "tokenizers/x"}) {
      entries = whole;
      entries[i].first = name;
      EXPECT_NE(refusal(sealed(entries)), "") << whole[i].first << " as " << name;
    }
  }
}

TEST(TransferTest, AConversationThatCannotBeIsRefused) {
  const auto refused = [](const std::function<void(Conversation&)>& change) {
    const MadeTransfer made = made_transfer(kSeed, 2);
    Conversation one = made.items.back().conversation;
    Entries entries = entries_of(written(made));
    auto& last = entry(entries, conversation_entry_name(one.id));
    change(one);
    last = {conversation_entry_name(one.id), encode_conversation_entry(one)};
    const std::string bytes = sealed(entries);
    return refused_for_itself(bytes);
  };
  EXPECT_FALSE(refused([](Conversation&) {}));
  EXPECT_TRUE(refused([](Conversation& one) { one.turns[0].prompt[1] = -5; }));
  EXPECT_TRUE(refused([](Conversation& one) { one.turns[1].answer[1] = kMostTokenId + 1; }));
  EXPECT_TRUE(refused([](Conversation& one) { one.turns[0].temperature = -1; }));
  EXPECT_TRUE(refused([](Conversation& one) { one.turns[0].state = TurnState::kAsked; }));
  EXPECT_TRUE(refused([](Conversation& one) { one.scope = "stranger"; }));
  EXPECT_TRUE(refused([](Conversation& one) { one.name_space = {}; }));
  EXPECT_TRUE(refused([](Conversation& one) { one.created_unix_us = -1; }));
  EXPECT_TRUE(refused([](Conversation& one) { one.id.back() = 'a'; }));
}

}  // namespace
}  // namespace ember::testing
