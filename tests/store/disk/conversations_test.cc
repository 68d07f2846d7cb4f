// Conversations: what was reported survives; what is damaged is reported, never forgotten.
#include "store/conversations.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

ConversationsOptions options_for(const std::string& directory) {
  ConversationsOptions options;
  options.directory = directory;
  options.limit_bytes = 16u << 20;
  options.memtable_bytes = 1u << 20;
  return options;
}

std::unique_ptr<Conversations> open_ok(const ConversationsOptions& options) {
  auto conversations = Conversations::open(options);
  EXPECT_TRUE(conversations.ok()) << conversations.error().message;
  return conversations.ok() ? std::move(*conversations) : nullptr;
}

std::string id_of(uint64_t number) {
  uint64_t mixed = mix64(number + 1);
  return to_hex(std::as_bytes(std::span<const uint64_t>(&mixed, 1)));
}

Turn made_turn(uint64_t seed) {
  Prng prng(seed);
  Turn turn;
  turn.user = "question " + std::to_string(prng());
  for (uint64_t i = prng.below(40); i > 0; --i) turn.prompt.push_back(static_cast<TokenId>(i));
  for (uint64_t i = prng.below(40); i > 0; --i) {
    turn.answer.push_back(static_cast<TokenId>(prng.below(100000)));
  }
  turn.state = prng.below(2) == 0 ? TurnState::kAsked : TurnState::kFinished;
  turn.finish_reason = turn.state == TurnState::kFinished ? "stop" : "";
  turn.seed = prng();
  turn.temperature = 0.25f;
  turn.max_tokens = 128;
  return turn;
}

void expect_equal(const Turn& found, const Turn& expected) {
  EXPECT_EQ(found.user, expected.user);
  EXPECT_EQ(found.prompt, expected.prompt);
  EXPECT_EQ(found.answer, expected.answer);
  EXPECT_EQ(found.state, expected.state);
  EXPECT_EQ(found.finish_reason, expected.finish_reason);
  EXPECT_EQ(found.seed, expected.seed);
  EXPECT_EQ(found.temperature, expected.temperature);
  EXPECT_EQ(found.max_tokens, expected.max_tokens);
}

void fill(Conversations& conversations, uint64_t number, uint32_t turns) {
  Conversation head;
  head.id = id_of(number);
  head.name_space = made_hash(number);
  head.system = "You are number " + std::to_string(number);
  head.template_name = "deepseek_v3";
  head.created_unix_us = 5;
  head.updated_unix_us = static_cast<int64_t>(number * 1000);
  ASSERT_TRUE(conversations.put_head(head).ok());
  for (uint32_t i = 0; i < turns; ++i) {
    Status status = conversations.put_turn(head.id, i, made_turn(number * 100 + i));
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
}

void expect_whole(Conversations& conversations, uint64_t number, uint32_t turns) {
  auto loaded = conversations.load(id_of(number));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->system, "You are number " + std::to_string(number));
  EXPECT_EQ(loaded->name_space, made_hash(number));
  ASSERT_EQ(loaded->turns.size(), turns);
  for (uint32_t i = 0; i < turns; ++i) {
    expect_equal(loaded->turns[i], made_turn(number * 100 + i));
  }
}

constexpr uint64_t kNumbers[] = {2, 7, 4};

TEST(ConversationsTest, ComeBackAfterReopeningNewestFirst) {
  ScratchFolder folder;
  auto options = options_for(folder.sub("conversations"));
  {
    auto conversations = open_ok(options);
    for (uint64_t number : kNumbers) fill(*conversations, number, static_cast<uint32_t>(number));
  }
  for (int round = 0; round < 3; ++round) {
    auto conversations = open_ok(options);
    for (uint64_t number : kNumbers) {
      expect_whole(*conversations, number, static_cast<uint32_t>(number));
    }
    auto heads = conversations->list();
    ASSERT_TRUE(heads.ok());
    ASSERT_EQ(heads->size(), 3u);
    EXPECT_EQ((*heads)[0].id, id_of(7));
    EXPECT_EQ((*heads)[2].id, id_of(2));
    EXPECT_EQ(conversations->unreadable_heads(), 0u);
    EXPECT_TRUE(conversations->verify_files()->empty());
  }
}

TEST(ConversationsTest, TurnIsWrittenOverAndRemovalIsWhole) {
  ScratchFolder folder;
  auto conversations = open_ok(options_for(folder.sub("conversations")));
  fill(*conversations, 1, 3);
  fill(*conversations, 2, 3);
  ASSERT_TRUE(conversations->put_turn(id_of(1), 2, made_turn(999)).ok());
  expect_equal(conversations->load(id_of(1))->turns[2], made_turn(999));
  ASSERT_TRUE(conversations->remove(id_of(1)).ok());
  EXPECT_EQ(conversations->load(id_of(1)).error().code, ErrorCode::kInvalidArgument);
  expect_whole(*conversations, 2, 3);
  EXPECT_EQ(conversations->load("no id").error().code, ErrorCode::kInvalidArgument);
}

TEST(ConversationsTest, MissingTurnInTheMiddleIsDamage) {
  ScratchFolder folder;
  auto conversations = open_ok(options_for(folder.sub("conversations")));
  fill(*conversations, 1, 2);
  ASSERT_TRUE(conversations->put_turn(id_of(1), 3, made_turn(1)).ok());
  EXPECT_EQ(conversations->load(id_of(1)).error().code, ErrorCode::kCorruption);
}

TEST(ConversationsTest, TailsComeBackProven) {
  ScratchFolder folder;
  auto options = options_for(folder.sub("conversations"));
  MadeBlock first = make_block(1, 2, 3000), second = make_block(2, 1, 500);
  first.record.tail = second.record.tail = true;
  {
    auto conversations = open_ok(options);
    ASSERT_TRUE(conversations->put_tail(first.record, first.payloads, true).ok());
    ASSERT_TRUE(conversations->put_tail(second.record, second.payloads, false).ok());
    ASSERT_TRUE(conversations->erase_tail(second.record.hash).ok());
  }
  auto conversations = open_ok(options);
  auto listing = conversations->list_tails();
  ASSERT_TRUE(listing.ok());
  ASSERT_EQ(listing->records.size(), 1u);
  EXPECT_EQ(listing->records[0], first.record);
  for (uint32_t g = 0; g < 2; ++g) {
    std::vector<std::byte> raw(3000);
    ASSERT_TRUE(conversations->read_tail_group(first.record, g, raw).ok());
    EXPECT_EQ(raw, first.raw[g]);
  }
  std::vector<std::byte> raw(500);
  EXPECT_FALSE(conversations->read_tail_group(second.record, 0, raw).ok());
}

TEST(ConversationsTest, StayWithinTheirLimitAndTailsCanBeReplacedForEver) {
  ScratchFolder folder;
  auto options = options_for(folder.sub("conversations"));
  options.limit_bytes = 2u << 20;
  auto conversations = open_ok(options);
  fill(*conversations, 1, 3);
  for (uint64_t id = 0; id < 120; ++id) {
    MadeBlock tail = make_block(id, 1, 60000);
    Status status = conversations->put_tail(tail.record, tail.payloads, false);
    ASSERT_TRUE(status.ok()) << id << " " << status.error().message;
    ASSERT_TRUE(conversations->erase_tail(made_hash(id)).ok());
    ASSERT_LE(bytes_below(options.directory), options.limit_bytes);
  }
  Status status;
  for (uint64_t id = 0; id < 200 && status.ok(); ++id) {
    MadeBlock tail = make_block(id, 1, 60000);
    status = conversations->put_tail(tail.record, tail.payloads, false);
    ASSERT_LE(bytes_below(options.directory), options.limit_bytes);
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCapacity);
  expect_whole(*conversations, 1, 3);
  EXPECT_TRUE(conversations->remove(id_of(1)).ok());
}

TEST(ConversationsTest, ReadOnlyOpeningChangesNothing) {
  ScratchFolder folder;
  auto options = options_for(folder.sub("conversations"));
  auto holder = open_ok(options);
  fill(*holder, 1, 3);
  auto before = files_below(options.directory);
  options.read_only = true;
  {
    auto looking = open_ok(options);
    expect_whole(*looking, 1, 3);
    EXPECT_FALSE(looking->put_turn(id_of(1), 3, made_turn(1)).ok());
  }
  EXPECT_EQ(files_below(options.directory), before);
}

TEST(ConversationsTest, LostCurrentFileIsReportedNotAnsweredWithAnEmptyDatabase) {
  ScratchFolder folder;
  auto options = options_for(folder.sub("conversations"));
  { fill(*open_ok(options), 1, 3); }
  fs::remove(options.directory + "/CURRENT");
  EXPECT_FALSE(Conversations::open(options).ok());
}

// The log as a kill leaves it: cut anywhere, the turns whose records are whole are there.
// A changed byte in a table of tails is met by every compaction, and the first failed one would
// stop all writing.
TEST(ConversationsTest, DamagedTailsAreGivenUpAndTurnsGoOn) {
  ScratchFolder folder;
  auto options = options_for(folder.sub("conversations"));
  MadeBlock tail = make_block(1, 2, 30000);
  tail.record.tail = true;
  {
    auto conversations = open_ok(options);
    fill(*conversations, 1, 2);
    ASSERT_TRUE(conversations->put_tail(tail.record, tail.payloads, true).ok());
  }
  open_ok(options).reset();  // its log becomes tables
  std::string largest;
  for (const auto& entry : fs::directory_iterator(options.directory)) {
    if (entry.path().extension() != ".sst") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  ASSERT_FALSE(largest.empty());
  {
    std::fstream file(largest, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(20000);
    file.put('!');
  }
  {
    auto conversations = open_ok(options);
    auto listing = conversations->list_tails();
    ASSERT_TRUE(listing.ok());
    EXPECT_EQ(listing->unreadable, 1u);
    EXPECT_TRUE(listing->records.empty());
    ASSERT_TRUE(conversations->put_tail(tail.record, tail.payloads, true).ok());
  }
  for (uint32_t i = 2; i < 12; ++i) {  // enough tables to be compacted
    auto conversations = open_ok(options);
    EXPECT_EQ(conversations->list_tails()->unreadable, 0u);
    EXPECT_EQ(conversations->list_tails()->records.size(), 1u);
    Status status = conversations->put_turn(id_of(1), i, made_turn(i));
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(conversations->load(id_of(1))->turns.size(), i + 1);
  }
}

TEST(ConversationsTest, TornEndOfTheLogLosesOnlyWhatWasTorn) {
  ScratchFolder folder;
  auto options = options_for(folder.sub("conversations"));
  { fill(*open_ok(options), 1, 6); }
  std::string log;
  for (const std::string& file : files_below(options.directory)) {
    if (file.ends_with(".log") && fs::file_size(file) > 0) log = file;
  }
  ASSERT_FALSE(log.empty());
  uint64_t size = fs::file_size(log);
  for (uint64_t cut = 1; cut < size; cut += 37) {
    auto copy = options_for(folder.sub("cut" + std::to_string(cut)));
    fs::copy(options.directory, copy.directory);
    fs::resize_file(copy.directory + "/" + fs::path(log).filename().string(), size - cut);
    auto conversations = open_ok(copy);
    ASSERT_NE(conversations, nullptr) << cut;
    auto loaded = conversations->load(id_of(1));
    if (loaded.ok()) {
      ASSERT_LT(loaded->turns.size(), 6u);
      for (uint32_t i = 0; i < loaded->turns.size(); ++i) {
        expect_equal(loaded->turns[i], made_turn(100 + i));
      }
    }
  }
}

}  // namespace
}  // namespace ember
