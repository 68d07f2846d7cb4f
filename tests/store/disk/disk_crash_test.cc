// SIGKILL at random points: all that was reported flushed is there and right.
//
// The test's own process never touches RocksDB, since its threads do not survive a fork: one child
// writes until it is killed, another one looks at what is left.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <set>
#include <thread>

#include "store/conversations.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

constexpr uint64_t kLimit = 8u << 20;
constexpr const char* kId = "00112233445566aa";

struct Report {
  enum Kind : uint64_t { kErasing, kDurable } kind;
  uint64_t id;  // the block that may be gone from now on; the first one that is not yet durable
};

void tell(int pipe, Report report) {
  if (::write(pipe, &report, sizeof report) != static_cast<ssize_t>(sizeof report)) ::_exit(3);
}

// Never returns.
void write_blocks(const std::string& directory, int pipe, uint64_t seed) {
  Prng prng(seed);
  auto opened = DiskTier::open(small_tier(directory, kLimit));
  if (!opened.ok()) ::_exit(4);
  DiskTier& tier = **opened;
  std::deque<uint64_t> oldest;
  for (uint64_t id = 0;; ++id) {
    MadeBlock block = make_block(id, 1 + static_cast<uint32_t>(id % 3), 30000);
    while (!tier.has_room(block.record.stored_bytes())) {
      if (tier.make_room(block.record.stored_bytes()).ok()) continue;
      for (int i = 0; i < 8 && !oldest.empty(); ++i) {
        tell(pipe, {Report::kErasing, oldest.front()});
        if (!tier.erase(made_hash(oldest.front())).ok()) ::_exit(5);
        oldest.pop_front();
      }
    }
    if (!tier.put(block.record, block.payloads).ok()) ::_exit(6);
    oldest.push_back(id);
    if (prng.below(6) == 0) {
      if (!tier.flush().ok()) ::_exit(7);
      tell(pipe, {Report::kDurable, id + 1});
    }
  }
}

// Exits 0 when all is well.
void check_blocks(const std::string& directory, uint64_t durable,
                  const std::set<uint64_t>& erased) {
  if (bytes_below(directory) > kLimit) ::_exit(10);
  auto opened = DiskTier::open(small_tier(directory, kLimit));
  if (!opened.ok()) ::_exit(11);
  auto listing = (*opened)->list();
  if (!listing.ok() || listing->unreadable != 0) ::_exit(12);
  std::set<uint64_t> found;
  for (auto& [record, touch] : listing->records) {
    MadeBlock block = make_block(record.position, 1 + record.position % 3, 30000);
    if (!read_error(**opened, record, block).empty()) ::_exit(13);
    found.insert(record.position);
  }
  for (uint64_t id = 0; id < durable; ++id) {
    if (erased.count(id) == 0 && found.count(id) == 0) ::_exit(14);
  }
  ::_exit(testing::Test::HasFailure() ? 15 : 0);
}

// Runs `writer` in a child, kills it after a while, and returns what it had reported.
std::vector<Report> run_and_kill(const std::function<void(int)>& writer, uint64_t delay_us) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    writer(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::vector<Report> reports;
  Report report;
  // The clock starts with the first report, so that a slow machine still writes something.
  if (::read(ends[0], &report, sizeof report) == sizeof report) reports.push_back(report);
  std::thread killer([&] {
    ::usleep(static_cast<useconds_t>(delay_us));
    ::kill(child, SIGKILL);
  });
  while (::read(ends[0], &report, sizeof report) == sizeof report) reports.push_back(report);
  killer.join();
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer gave up with " << WEXITSTATUS(status);
  return reports;
}

int run_checker(const std::function<void()>& checker) {
  pid_t child = ::fork();
  if (child == 0) {
    checker();
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

TEST(DiskCrashTest, FlushedBlocksSurviveAKillAtAnyPoint) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ScratchFolder folder;
    Prng prng(seed + 77);
    std::string directory = folder.sub("blocks");
    auto reports = run_and_kill([&](int pipe) { write_blocks(directory, pipe, seed); },
                                2000 + prng.below(400000));
    uint64_t durable = 0;
    std::set<uint64_t> erased;
    for (const Report& report : reports) {
      if (report.kind == Report::kDurable) durable = report.id;
      if (report.kind == Report::kErasing) erased.insert(report.id);
    }
    EXPECT_GT(durable, 0u);
    EXPECT_EQ(run_checker([&] { check_blocks(directory, durable, erased); }), 0) << "seed " << seed;
  }
}

Turn numbered_turn(uint64_t index) {
  Turn turn;
  turn.user = std::string(index * 37 % 500, 'u');
  turn.answer.assign(index % 50, static_cast<TokenId>(index));
  return turn;
}

ConversationsOptions conversation_options(const std::string& directory) {
  ConversationsOptions options;
  options.directory = directory;
  options.limit_bytes = 8u << 20;
  options.memtable_bytes = 256u << 10;
  return options;
}

void write_turns(const std::string& directory, int pipe) {
  auto opened = Conversations::open(conversation_options(directory));
  if (!opened.ok()) ::_exit(4);
  Conversation head;
  head.id = kId;
  if (!(*opened)->put_head(head).ok()) ::_exit(5);
  for (uint32_t i = 0; i < 5000; ++i) {
    if (!(*opened)->put_turn(kId, i, numbered_turn(i)).ok()) ::_exit(6);
    tell(pipe, {Report::kDurable, i + 1});
  }
  ::pause();
}

void check_turns(const std::string& directory, uint64_t durable) {
  auto opened = Conversations::open(conversation_options(directory));
  if (!opened.ok()) ::_exit(11);
  auto loaded = (*opened)->load(kId);
  if (!loaded.ok() || loaded->turns.size() < durable) ::_exit(12);
  for (uint64_t i = 0; i < loaded->turns.size(); ++i) {
    if (loaded->turns[i].user != numbered_turn(i).user) ::_exit(13);
    if (loaded->turns[i].answer != numbered_turn(i).answer) ::_exit(14);
  }
  ::_exit(0);
}

TEST(DiskCrashTest, ReportedTurnsSurviveAKillAtAnyPoint) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ScratchFolder folder;
    Prng prng(seed + 99);
    std::string directory = folder.sub("conversations");
    auto reports = run_and_kill([&](int pipe) { write_turns(directory, pipe); },
                                1000 + prng.below(200000));
    ASSERT_FALSE(reports.empty());
    uint64_t durable = reports.back().id;
    EXPECT_EQ(run_checker([&] { check_turns(directory, durable); }), 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ember
