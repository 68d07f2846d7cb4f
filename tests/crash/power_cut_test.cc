// The power goes at a seeded moment; on one of the states that the drive may be left in, the store
// opens again, has what was durable, and serves no wrong byte. EMBER_CUT_SEED=N: that seed alone,
// many times over, since threads make each life a little different.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ostream>
#include <thread>

#include "tests/crash/store_story.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/store/disk/store_scan.h"
#include "tests/support/power_cut_file_system.h"

namespace ember::testing {
namespace {

constexpr int kEvents = 100;
constexpr uint64_t kLives = 3;
constexpr int kThreads = 16;
constexpr uint64_t kPlantedSeeds = 16;
constexpr uint64_t kMostOperations = 450;  // about what so many events do

using SwallowSync = std::function<bool(const std::string& path, bool folder)>;

// Lives until the cut, and returns what must be there after it.
StoryOracle live_and_cut(PowerCutFileSystem& files, const BaseFileSystem& base, uint64_t seed,
                         const std::string& path, const StoryOracle& known) {
  StoreStory story({.seed = seed,
                    .path = path,
                    .base = base,
                    .is_cut = [&files] { return files.is_cut(); }},
                   known);
  story.run(kEvents);
  files.cut();
  return story.is_open() ? story.oracle() : known;
}

// Three lives, each cut off; after each the whole store is checked.
void cut_and_check(uint64_t seed, const SwallowSync& swallow = nullptr) {
  // Most of them in memory; on a drive RocksDB takes its path past the page cache.
  const ScratchFolder folder(seed % 8 == 0 ? ScratchFolder::kDrive : ScratchFolder::kAnywhere);
  const std::string path = folder.sub("store");
  Prng prng(seed);
  StoryOracle oracle;
  for (uint64_t life = 0; life < kLives && !::testing::Test::HasFailure(); ++life) {
    const uint64_t cut_at = 1 + prng.below(prng.below(3) == 0 ? 120 : kMostOperations);
    const auto files = std::make_shared<PowerCutFileSystem>(
        PowerCutOptions{.root = path, .cut_at = cut_at, .swallow_sync = swallow});
    oracle = live_and_cut(*files, files, seed * kLives + life, path, oracle);
    files->make_after_state(seed * 31 + life);
    {
      const auto calm = std::make_shared<PowerCutFileSystem>(PowerCutOptions{.root = path});
      StoreStory after({.seed = seed, .path = path, .base = calm}, oracle);
      after.expect_whole();
    }
    for (const std::string& orphan : orphans_of(path + "/blocks")) ADD_FAILURE() << orphan;
  }
}

// The store as it was when the power went is opened, and the power goes again at that moment, with
// the drive keeping any of the names and sectors that were not synced.
void cut_an_opening(uint64_t seed, uint64_t cut_at) {
  const ScratchFolder folder;
  const std::string path = folder.sub("store");
  StoryOracle oracle;
  for (const uint64_t at : {uint64_t{0}, cut_at}) {
    const auto files = std::make_shared<PowerCutFileSystem>(
        PowerCutOptions{.root = path, .cut_at = at, .swallow_sync = nullptr});
    oracle = live_and_cut(*files, files, seed * kLives + at, path, oracle);
    files->make_after_state(seed * 31 + at, at == 0 ? CutStyle::kAll : CutStyle::kReordered);
  }
  const auto calm = std::make_shared<PowerCutFileSystem>(PowerCutOptions{.root = path});
  StoreStory({.seed = seed, .path = path, .base = calm}, oracle).expect_whole();
}

// Side by side, since most of a life's end is waiting.
void for_seeds(uint64_t count, const std::function<void(uint64_t seed)>& run) {
  let_many_stores_wait(kThreads);
  std::atomic<uint64_t> next{1};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (uint64_t seed = next++; seed <= count; seed = next++) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        run(seed);
        if (::testing::Test::HasFailure()) return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PowerCutTest, WhatWasDurableIsThereAndRight) {
  const char* only = std::getenv("EMBER_CUT_SEED");
  for_seeds(EMBER_CRASH_SEEDS, [only](uint64_t seed) {
    cut_and_check(only == nullptr ? seed : std::strtoull(only, nullptr, 10));
  });
}

TEST(PowerCutTest, AnOpeningIsCutAtEachOfItsMoments) {
  constexpr uint64_t kMoments = 70;  // file operations of an opening
  for_seeds(2 * kMoments, [](uint64_t seed) { cut_an_opening(seed, 1 + seed % kMoments); });
}

// A sync that reports success and does nothing: one kind at a time is taken away, and the test
// above must notice.
struct Planted {
  const char* name;
  SwallowSync swallow;
  friend void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }
};

bool below(const std::string& path, const char* part, const char* end) {
  return path.find(part) != std::string::npos && path.ends_with(end);
}

class PlantedFaultTest : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedFaultTest, MissingSyncIsFound) {
  ::testing::TestPartResultArray found;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &found);
    for_seeds(kPlantedSeeds, [](uint64_t seed) { cut_and_check(seed * 5, GetParam().swallow); });
  }
  EXPECT_GT(found.size(), 0) << "the power cut test misses a missing sync";
}

INSTANTIATE_TEST_SUITE_P(
    EachKind, PlantedFaultTest,
    ::testing::Values(
        Planted{"blobs", [](const std::string& p, bool) { return below(p, "/blocks/", ".blob"); }},
        Planted{"tables", [](const std::string& p, bool) { return below(p, "/blocks/", ".sst"); }},
        Planted{"manifest", [](const std::string& p, bool) { return below(p, "MANIFEST", ""); }},
        Planted{"turns", [](const std::string& p, bool) { return p.ends_with(".log"); }},
        Planted{"identity", [](const std::string& p, bool) { return p.ends_with(".tmp"); }},
        Planted{"store_folder",
                [](const std::string& p, bool f) { return f && below(p, "", "/store"); }},
        Planted{"database_folder",
                [](const std::string& p, bool f) { return f && below(p, "", "/blocks"); }}),
    [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace ember::testing
