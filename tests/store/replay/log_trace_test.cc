// An access log as a trace.
#include "store/replay/log_trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

AccessEntry entry_of(std::vector<uint8_t> blocks, uint32_t prompt_tokens, uint32_t tokens) {
  AccessEntry entry;
  entry.unix_us = 1'000'000 * int64_t{tokens};
  entry.tokens = tokens;
  entry.prompt_tokens = prompt_tokens;
  entry.restored_tokens[2] = 10;
  entry.scope = "shared";
  for (const uint8_t number : blocks) {
    BlockHash hash;
    hash.bytes.fill(number);
    entry.blocks.push_back(hash);
  }
  return entry;
}

void write_log(const std::string& path, const std::vector<AccessEntry>& entries) {
  AccessFrames frames;
  std::ofstream file(path, std::ios::binary);
  file << AccessFrames::header();
  for (const AccessEntry& entry : entries) file << frames.encode(entry);
}

TEST(LogTraceTest, EntriesOfBothFilesAreRequestsInTheirOrder) {
  const TempFolder store;
  std::filesystem::create_directory(access_log_folder(store.path()));
  const std::string folder = access_log_folder(store.path()) + "/";
  write_log(folder + kAccessLogBefore, {entry_of({1, 2, 3}, 150, 200)});
  write_log(folder + kAccessLogNow, {entry_of({1, 2, 4}, 192, 210), entry_of({}, 20, 30)});
  std::ofstream(folder + kAccessLogNow, std::ios::app | std::ios::binary) << "torn";
  const auto log = replay::read_log_trace(store.path(), 64);
  ASSERT_TRUE(log.ok()) << log.error().message;
  const replay::Trace& trace = log->trace;
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.blocks(), 4u);
  EXPECT_EQ(trace.requests[0].blocks, 3u);
  EXPECT_EQ(trace.requests[0].looked_up, 2u) << "the third was the answer's";
  EXPECT_EQ(trace.requests[1].looked_up, 3u);
  EXPECT_EQ(trace.references, 5u);
  EXPECT_EQ(trace.prompt_tokens, 150u + 192 + 20);
  EXPECT_EQ(log->restored_tokens[2], 30u);
  EXPECT_EQ(log->first_unix_us, 200'000'000);
  EXPECT_EQ(log->last_unix_us, 210'000'000);
  std::vector<replay::BlockNumber> chain;
  trace.chain(trace.requests[1], chain);
  EXPECT_EQ(chain, (std::vector<replay::BlockNumber>{0, 1, 3}));
  trace.chain(trace.requests[2], chain);
  EXPECT_TRUE(chain.empty());
}

TEST(LogTraceTest, AStoreWithoutALogHasNoRequests) {
  const TempFolder store;
  const auto log = replay::read_log_trace(store.path(), 64);
  ASSERT_TRUE(log.ok()) << log.error().message;
  EXPECT_TRUE(log->trace.requests.empty());
}

TEST(LogTraceTest, AFileThatIsNoLogIsNamed) {
  const TempFolder store;
  std::filesystem::create_directory(access_log_folder(store.path()));
  std::ofstream(access_log_folder(store.path()) + "/now") << "something else";
  const auto log = replay::read_log_trace(store.path(), 64);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.error().message.find("access_log/now"), std::string::npos) << log.error().message;
}

}  // namespace
}  // namespace ember::testing
