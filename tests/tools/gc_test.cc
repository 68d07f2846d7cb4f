// gc brings a store within a lower limit: a model would take too long to fill as large a one.
#include "tools/commands/change/gc.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "store/disk_plan.h"
#include "store/store_directory.h"
#include "store/store_editor.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLimit = 128 * kMiB;
constexpr uint64_t kBlocks = 700;
constexpr uint32_t kGroupBytes = 128 << 10;
constexpr uint64_t kTails = 12;

class GcTest : public ::testing::Test {
 protected:
  // Blocks without children, half of them with hits; some have a tail.
  GcTest() {
    EXPECT_TRUE(StoreDirectory::open(path_).ok());
    auto parts = WritableParts::open(path_, {}, kLimit);
    EXPECT_TRUE(parts.ok()) << parts.error().message;
    std::vector<std::pair<BlockHash, TouchRecord>> touches;
    for (uint64_t id = 0; id < kBlocks; ++id) {
      MadeBlock block = make_block(id, 1, kGroupBytes);
      block.record.parent = {};
      block.record.position = 0;
      EXPECT_TRUE(parts->disk->put(block.record, block.payloads).ok());
      touches.push_back({block.record.hash, {.last_use_unix_us = order(id), .hits = 1}});
      if (id % 20 != 19) continue;
      EXPECT_TRUE(parts->disk->flush().ok());
    }
    EXPECT_TRUE(parts->disk->touch(touches).ok());
    EXPECT_TRUE(parts->disk->flush().ok());
    for (uint64_t id = kBlocks; id < kBlocks + kTails; ++id) {
      MadeBlock tail = make_block(id, 1, 3000);
      tail.record.tail = true;
      tail.record.parent = made_hash(kBlocks - 1);  // that was used last
      tail.record.position = 1;
      EXPECT_TRUE(parts->conversations->put_tail(tail.record, tail.payloads, true).ok());
    }
  }

  // The oldest lie in all epochs: each keeps something that is put again.
  static int64_t order(uint64_t id) {
    return static_cast<int64_t>(1 + id / 2 + (id % 2) * kBlocks);
  }

  Json gc(bool dry_run, uint64_t disk_bytes) {
    GcOptions options;
    options.store.path = path_;
    options.disk_bytes = disk_bytes;
    options.dry_run = dry_run;
    options.json = true;
    std::istringstream in;
    std::ostringstream out, err;
    CommandContext context{
        .io = {.in = in, .out = out, .err = err},
        .open_reader = [](const StoreChoice& choice) -> Result<std::shared_ptr<StoreReader>> {
          EMBER_ASSIGN(std::unique_ptr<StoreReader> reader,
                       open_resting_store(choice.path, choice.encryption));
          return std::shared_ptr<StoreReader>(std::move(reader));
        },
        .open_live = [](const StoreChoice&) -> Result<LiveCache> {
          return Error{ErrorCode::kInvalidArgument, "nobody holds it"};
        },
        .open_editor = [](const StoreChoice& choice,
                          uint64_t bytes) -> Result<std::shared_ptr<StoreEditor>> {
          EMBER_ASSIGN(std::unique_ptr<StoreEditor> editor,
                       open_resting_editor(choice.path, choice.encryption,
                                           bytes == 0 ? kLimit : bytes));
          return std::shared_ptr<StoreEditor>(std::move(editor));
        }};
    const Result<int> code = run_gc(options, context);
    EXPECT_TRUE(code.ok()) << code.error().message;
    return code.ok() ? Json::parse(out.str()) : Json();
  }

  ScratchFolder folder_;
  const std::string path_ = folder_.sub("store");
};

TEST_F(GcTest, ALowerLimitIsReachedAtOnceAndWithoutTails) {
  const uint64_t lower = 64 * kMiB;
  const Json plan = gc(true, lower);
  ASSERT_FALSE(plan.is_null());
  EXPECT_GT(plan.at("blocks"), 0);
  EXPECT_EQ(plan.at("tails"), 0);  // theirs is another database
  const Json done = gc(false, lower);
  ASSERT_FALSE(done.is_null());
  for (const char* field : {"blocks", "tails", "stored_bytes", "oldest", "epochs"}) {
    EXPECT_EQ(done.at(field), plan.at(field)) << field;
  }
  EXPECT_GT(done.at("rewritten_bytes"), 0);
  EXPECT_LE(done.at("bytes_after").get<uint64_t>(), lower);
  const Json again = gc(true, lower);
  EXPECT_EQ(again.at("blocks"), 0);
  EXPECT_EQ(again.at("epochs"), 0);
  // What was used last is there.
  auto reader = open_resting_store(path_, {});
  ASSERT_TRUE(reader.ok());
  const auto record = (*reader)->record(made_hash(kBlocks - 1));
  ASSERT_TRUE(record.ok() && record->has_value());
  const auto oldest = (*reader)->record(made_hash(0));
  EXPECT_TRUE(oldest.ok() && !oldest->has_value());
}

}  // namespace
}  // namespace ember
