// Random flips of bits over all files of a store, through the real read path. EMBER_FLIPS says how
// many (1,000 if not), EMBER_FLIP_JOBS in how many processes at once, EMBER_FLIP_SEED which.
//
// Each few thousand run in a process of their own, with little memory to take: a crash, or a length
// that was believed, ends that process and fails the test by its seed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include "tests/store/cache/flip_run.h"
#include "tests/store/disk/disk_store_testing.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EMBER_SANITIZED 1
#else
#define EMBER_SANITIZED 0
#endif

namespace ember::testing {
namespace {

constexpr uint64_t kFlipsOfAProcess = 2000;
constexpr uint64_t kFlipsThatMeetAll = 1000;  // fewer may meet no opening for writing
constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;  // beyond what a process has at its start

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void limit_memory() {
  if (EMBER_SANITIZED != 0) return;  // they map all of the address space
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const uint64_t most = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + kMemoryBytes;
  const struct rlimit limit = {most, most};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
}

// RocksDB's threads do not survive a fork, so the parent never touches it.
class Child {
 public:
  explicit Child(const std::function<FlipCounts()>& work) {
    int ends[2] = {};
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      const FlipCounts counts = work();
      const bool told = ::write(ends[1], &counts, sizeof counts) ==
                        static_cast<ssize_t>(sizeof counts);
      std::fflush(nullptr);
      ::_exit(told && !::testing::Test::HasFailure() ? 0 : 1);
    }
    ::close(ends[1]);
    end_ = ends[0];
  }
  // False: it failed or crashed.
  bool join(FlipCounts& counts) {
    const ssize_t got = ::read(end_, &counts, sizeof counts);
    ::close(end_);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status);
    return got == static_cast<ssize_t>(sizeof counts) && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
  }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
};

void print(const FlipCounts& counts, double seconds) {
  std::printf("| file kind | files | bytes | flips | database refused | noticed, alone |\n"
              "|---|---|---|---|---|---|\n");
  uint64_t flips = 0;
  for (size_t kind = 0; kind < kFlipKinds; ++kind) {
    flips += counts.flips[kind];
    if (counts.files[kind] == 0) continue;
    std::printf("| %s | %llu | %llu | %llu | %llu | %llu |\n",
                flip_kind_name(static_cast<FlipKind>(kind)),
                static_cast<unsigned long long>(counts.files[kind]),
                static_cast<unsigned long long>(counts.bytes[kind]),
                static_cast<unsigned long long>(counts.flips[kind]),
                static_cast<unsigned long long>(counts.refused[kind]),
                static_cast<unsigned long long>(counts.noticed[kind]));
  }
  std::printf("%llu flips in %llu openings, %.0f s; %llu of them for writing: %llu healed, in %llu "
              "the store did not open or a damaged table kept RocksDB from writing\n",
              static_cast<unsigned long long>(flips),
              static_cast<unsigned long long>(counts.openings), seconds,
              static_cast<unsigned long long>(counts.openings_for_writing),
              static_cast<unsigned long long>(counts.healed),
              static_cast<unsigned long long>(counts.writes_stopped));
  std::printf("layer groups read: %llu right, %llu refused, 0 wrong; token rows restored: %llu, 0 "
              "wrong; conversations loaded: %llu right, %llu refused, 0 wrong\n",
              static_cast<unsigned long long>(counts.groups_right),
              static_cast<unsigned long long>(counts.groups_refused),
              static_cast<unsigned long long>(counts.rows_restored),
              static_cast<unsigned long long>(counts.conversations_right),
              static_cast<unsigned long long>(counts.conversations_refused));
}

TEST(FlipTest, NoFlippedBitIsEverAcceptedAndNoneCrashes) {
  const uint64_t flips = number_from("EMBER_FLIPS", 1000);
  const uint64_t jobs = std::max<uint64_t>(1, number_from("EMBER_FLIP_JOBS", 1));
  const uint64_t seed = number_from("EMBER_FLIP_SEED", 2026);
  const ScratchFolder folder;
  const std::string pristine = folder.sub("pristine");
  FlipCounts sum;
  ASSERT_TRUE(Child([&] {
                FlipRun::make_store(pristine);
                return FlipCounts{};
              }).join(sum));
  const auto began = std::chrono::steady_clock::now();
  std::map<uint64_t, std::unique_ptr<Child>> running;  // by seed
  const auto join_first = [&] {
    FlipCounts counts;
    const auto first = running.begin();
    EXPECT_TRUE(first->second->join(counts)) << "EMBER_FLIP_SEED=" << first->first;
    sum.add(counts);
    running.erase(first);
  };
  uint64_t next_seed = seed;
  for (uint64_t done = 0; done < flips && !HasFailure(); done += kFlipsOfAProcess) {
    if (running.size() == jobs) join_first();
    if (HasFailure()) break;  // a child would think that it was its own
    const uint64_t count = std::min(kFlipsOfAProcess, flips - done);
    const uint64_t chunk_seed = next_seed++;
    running[chunk_seed] = std::make_unique<Child>([&, chunk_seed, count] {
      FlipRun run(pristine, folder.sub("copy-" + std::to_string(chunk_seed % jobs)));
      limit_memory();
      return run.run(chunk_seed, count);
    });
  }
  while (!running.empty()) join_first();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  print(sum, took.count());
  EXPECT_GT(sum.groups_right, 0u);
  EXPECT_GT(sum.groups_refused, 0u);
  EXPECT_GT(sum.rows_restored, 0u);
  if (flips >= kFlipsThatMeetAll) {
    EXPECT_GT(sum.openings_for_writing, 0u);
  }
}

}  // namespace
}  // namespace ember::testing
