// RocksDB over a file system that fails by seed: no read, write, sync, creation, rename or deletion
// is sure to work. No wrong byte is served, nothing durable is lost, and the store gets up again.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "tests/crash/store_story.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/support/faulty_file_system.h"

namespace ember::testing {
namespace {

constexpr int kEvents = 60;
constexpr uint64_t kSeeds = EMBER_CRASH_SEEDS / 50;

enum class Kind : uint8_t {
  kWriteErrors,
  kFullDrive,
  kAnyErrors,
  kReadErrors,
  kShortReads,
  kFlippedBits
};

bool of_reads(Kind kind) { return kind >= Kind::kReadErrors; }

// Whether an act of the file system may fail.
bool may_fail(Kind kind, FileAct act) {
  if (kind == Kind::kFullDrive) return act == FileAct::kWrite || act == FileAct::kCreate;
  return kind == Kind::kAnyErrors || of_reads(kind) == (act == FileAct::kRead);
}

struct Weather {
  std::atomic<uint32_t> per_mille{0};
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> faults{0};

  bool strikes(uint64_t seed) {
    if (counter_random(seed, 3, calls++) % 1000 >= per_mille) return false;
    ++faults;
    return true;
  }
};

FaultHooks hooks_of(Kind kind, uint64_t seed, const std::shared_ptr<Weather>& weather) {
  FaultHooks hooks;
  if (kind <= Kind::kReadErrors) {
    hooks.before = [kind, seed, weather](FileAct act, const std::string& path) {
      if (!may_fail(kind, act) || !weather->strikes(seed)) return rocksdb::IOStatus::OK();
      return kind == Kind::kFullDrive ? rocksdb::IOStatus::NoSpace(path, "the weather")
                                      : rocksdb::IOStatus::IOError(path, "the weather");
    };
    return hooks;
  }
  hooks.after_read = [kind, seed, weather](const std::string&, uint64_t offset,
                                           std::string& bytes) {
    if (bytes.empty() || !weather->strikes(seed)) return;
    const uint64_t at = counter_random(seed, 5, offset) % bytes.size();
    if (kind == Kind::kShortReads) {
      bytes.resize(at);
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (offset % 8)));
    }
  };
  return hooks;
}

// Whether something went wrong on the way, which is what makes the rest worth something.
uint64_t live_in_weather(Kind kind, uint64_t seed) {
  const ScratchFolder folder;
  const std::string path = folder.sub("store");
  auto weather = std::make_shared<Weather>();
  StoryOracle oracle;
  {
    StoreStory story({.seed = seed,
                      .path = path,
                      .base = make_faulty_file_system(hooks_of(kind, seed, weather))},
                     {});
    EXPECT_TRUE(story.is_open());
    story.run(kEvents / 3);
    weather->per_mille = 1 + static_cast<uint32_t>(seed % 20);
    story.run(kEvents);
    EXPECT_EQ(story.harness().cache().stats().stranded, 0u);
    weather->per_mille = 0;
    EXPECT_TRUE(story.stores_again()) << story.harness().cache().health().reason;
    if (kind == Kind::kWriteErrors) {
      EXPECT_EQ(story.durable_damaged(), 0u);
    }
    oracle = story.oracle();
  }
  StoreStory after({.seed = seed, .path = path}, oracle);
  after.expect_whole(kind >= Kind::kAnyErrors);
  return weather->faults;
}

class FileFaultTest : public ::testing::TestWithParam<Kind> {};

TEST_P(FileFaultTest, NoWrongByteAndNothingDurableLost) {
  uint64_t faults = 0;
  const char* only = std::getenv("EMBER_FAULT_SEED");  // to look closely at one
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const uint64_t last = only != nullptr ? first : kSeeds;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    faults += live_in_weather(GetParam(), seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(faults, 0u);
}

std::string name_of(const ::testing::TestParamInfo<Kind>& kind) {
  switch (kind.param) {
    case Kind::kWriteErrors: return "WriteErrors";
    case Kind::kFullDrive: return "FullDrive";
    case Kind::kAnyErrors: return "AnyErrors";
    case Kind::kReadErrors: return "ReadErrors";
    case Kind::kShortReads: return "ShortReads";
    case Kind::kFlippedBits: return "FlippedBits";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Kinds, FileFaultTest,
                         ::testing::Values(Kind::kWriteErrors, Kind::kFullDrive, Kind::kAnyErrors,
                                           Kind::kReadErrors, Kind::kShortReads,
                                           Kind::kFlippedBits),
                         name_of);

}  // namespace
}  // namespace ember::testing
