// SIGKILL at random and at chosen moments of a whole cache's life; the store opens again, has what
// was reported durable, and serves no wrong byte.
//
// The test's own process never touches RocksDB, whose threads do not survive a fork: a few
// supervisors share the seeds; for each life they fork one child that lives until it is killed, and
// another one that checks what is left.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/bytes.h"
#include "base/clock.h"
#include "tests/crash/store_story.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/store/disk/store_scan.h"
#include "tests/support/faulty_file_system.h"

namespace ember::testing {
namespace {

constexpr int kSupervisors = 4;
constexpr int kEvents = 100;
constexpr uint64_t kLives = 2;
constexpr int64_t kMostDelayUs = 250'000;

// Where a life ends: at the n-th act of a kind, or when the supervisor says so.
struct End {
  bool chosen = false;
  FileAct act = FileAct::kWrite;
  uint64_t count = 0;
  int64_t delay_us = 0;
};

End draw_end(Prng& prng) {
  End end;
  end.chosen = prng.below(2) == 0;
  // Reads are many and change nothing: the six acts behind them.
  end.act = static_cast<FileAct>(1 + prng.below(kFileActs - 1));
  const bool frequent = end.act == FileAct::kWrite || end.act == FileAct::kSync;
  end.count = 1 + prng.below(frequent ? 150 : 40);
  end.delay_us = static_cast<int64_t>(prng.below(kMostDelayUs));
  return end;
}

void tell(int pipe, const StoryOracle& oracle) {
  std::string bytes;
  append_value(bytes, oracle.turns);
  append_value(bytes, static_cast<uint32_t>(oracle.must.size()));
  for (const BlockHash& hash : oracle.must) bytes += hash.view();
  if (::write(pipe, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) ::_exit(3);
}

// The last one that was told whole.
StoryOracle last_told(const std::string& bytes, StoryOracle oracle) {
  ByteReader reader(bytes);
  while (true) {
    StoryOracle next;
    next.turns = reader.read<uint32_t>();
    const auto count = reader.read<uint32_t>();
    for (uint32_t i = 0; i < count && !reader.failed(); ++i) {
      next.must.insert(reader.read<BlockHash>());
    }
    if (reader.failed()) return oracle;
    oracle = std::move(next);
    if (reader.finished()) return oracle;
  }
}

// In a child; never returns. Waits to be killed where it came to its end alive.
[[noreturn]] void live(uint64_t seed, const std::string& path, const End& end,
                       const StoryOracle& known, int pipe) {
  auto left = std::make_shared<std::atomic<uint64_t>>(end.count);
  FaultHooks hooks;
  hooks.before = [end, left](FileAct act, const std::string&) {
    if (end.chosen && act == end.act && left->fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
    return rocksdb::IOStatus::OK();
  };
  StoreStory story({.seed = seed,
                    .path = path,
                    .base = make_faulty_file_system(hooks),
                    .tell = [pipe](const StoryOracle& oracle) { tell(pipe, oracle); }},
                   known);
  if (!story.is_open()) ::_exit(4);
  story.run(kEvents);
  ::kill(::getpid(), SIGKILL);
  ::_exit(5);
}

[[noreturn]] void check(uint64_t seed, const std::string& path, const StoryOracle& known) {
  {
    StoreStory after({.seed = seed, .path = path}, known);
    after.expect_whole();
  }
  for (const std::string& orphan : orphans_of(path + "/blocks")) ADD_FAILURE() << orphan;
  std::fflush(stdout);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

// Reads what the child tells until it is dead; kills it when its time is over.
std::string listen_and_kill(int pipe, pid_t child, const End& end) {
  std::string told;
  std::vector<char> chunk(1u << 16);
  const int64_t until_us = system_clock().now_us() + end.delay_us;
  bool killed = end.chosen;
  while (true) {
    const int64_t left_us = std::max<int64_t>(0, until_us - system_clock().now_us());
    struct pollfd ready {pipe, POLLIN, 0};
    const int timeout_ms = killed ? -1 : static_cast<int>(left_us / 1000);
    const int count = ::poll(&ready, 1, timeout_ms);
    if (!killed && system_clock().now_us() >= until_us) {
      ::kill(child, SIGKILL);
      killed = true;
    }
    if (count <= 0) continue;
    const ssize_t got = ::read(pipe, chunk.data(), chunk.size());
    if (got <= 0) return told;
    told.append(chunk.data(), static_cast<size_t>(got));
  }
}

// Whether all lives of a seed ended well.
bool kill_and_check(uint64_t seed) {
  const ScratchFolder folder(seed % 8 == 0 ? ScratchFolder::kDrive : ScratchFolder::kAnywhere);
  const std::string path = folder.sub("store");
  Prng prng(seed);
  StoryOracle oracle;
  for (uint64_t life = 0; life < kLives; ++life) {
    const End end = draw_end(prng);
    int ends[2];
    if (::pipe(ends) != 0) return false;
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      live(seed * kLives + life, path, end, oracle, ends[1]);
    }
    ::close(ends[1]);
    oracle = last_told(listen_and_kill(ends[0], child, end), std::move(oracle));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) {
      std::printf("seed %llu: the store could not be opened\n",
                  static_cast<unsigned long long>(seed));
      return false;
    }
    const pid_t checker = ::fork();
    if (checker == 0) check(seed, path, oracle);
    ::waitpid(checker, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::printf("seed %llu, life %llu: not whole after a kill\n",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(life));
      std::fflush(stdout);
      return false;
    }
  }
  return true;
}

TEST(StoreKillTest, WhatWasDurableIsThereAndRight) {
  std::vector<pid_t> supervisors;
  std::fflush(stdout);
  for (int i = 0; i < kSupervisors; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool good = true;
      for (uint64_t seed = static_cast<uint64_t>(i) + 1; seed <= EMBER_CRASH_SEEDS;
           seed += kSupervisors) {
        good = kill_and_check(seed) && good;
      }
      ::_exit(good ? 0 : 1);
    }
    supervisors.push_back(child);
  }
  for (const pid_t child : supervisors) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

}  // namespace
}  // namespace ember::testing
