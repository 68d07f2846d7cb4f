// The mailbox: what other threads ask for runs on the engine thread, once or never.
#include "engine/runtime/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/engine/runtime/engine_harness.h"

namespace ember {
namespace {

constexpr int64_t kPatienceUs = 60'000'000;

class MailboxTest : public testing::Test {
 protected:
  void tick_until(const std::atomic<int>& count, int wanted) {
    engine_->scheduler().run_until([&] { return count.load() == wanted; });
  }

  std::unique_ptr<Engine> engine_ = must_open(small_options(""));
  Mailbox mailbox_{engine_->device(), engine_->scheduler()};
};

TEST_F(MailboxTest, CallsRunOnTheEngineThreadWhileItServesARequest) {
  const std::thread::id engine_thread = std::this_thread::get_id();
  std::atomic<int> ended{0};
  int ran = 0;  // the engine thread's alone
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 100; ++call) {
        const Status called = mailbox_.call(
            [&] {
              EXPECT_EQ(std::this_thread::get_id(), engine_thread);
              ++ran;
            },
            kPatienceUs);
        EXPECT_TRUE(called.ok());
      }
      ++ended;
    });
  }
  EXPECT_TRUE(engine_->run(small_request(100, 1, 8)).status.ok());
  tick_until(ended, 8);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 800);
}

TEST_F(MailboxTest, WhatWasGivenUpNeverRuns) {
  std::atomic<int> ended{0};
  bool ran = false;
  std::thread thread([&] {
    const Status given_up = mailbox_.call([&ran] { ran = true; }, 1000);
    ASSERT_FALSE(given_up.ok());
    EXPECT_EQ(given_up.error().code, ErrorCode::kBusy) << "it is slow, and does not end";
    ++ended;
  });
  thread.join();  // nobody ticked
  EXPECT_EQ(ended, 1);
  std::thread other([&] {
    EXPECT_TRUE(mailbox_.call([] {}, kPatienceUs).ok());
    ++ended;
  });
  tick_until(ended, 2);
  other.join();
  EXPECT_FALSE(ran);
}

TEST_F(MailboxTest, ClosingTellsThoseWhoWait) {
  std::atomic<int> posted{0};
  bool ran = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ++posted;
      const Status closed = mailbox_.call([&ran] { ran = true; }, kPatienceUs);
      ASSERT_FALSE(closed.ok());
      EXPECT_EQ(closed.error().code, ErrorCode::kCancelled);
    });
  }
  while (posted != 4) std::this_thread::yield();
  mailbox_.close();
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(mailbox_.post([&ran] { ran = true; }));
  EXPECT_TRUE(engine_->run(small_request(20, 1, 2)).status.ok());
  EXPECT_FALSE(ran);
}

TEST_F(MailboxTest, FullMailboxRefuses) {
  size_t ran = 0;
  for (size_t i = 0; i < Mailbox::kMostLetters; ++i) EXPECT_TRUE(mailbox_.post([&] { ++ran; }));
  EXPECT_FALSE(mailbox_.post([&] { ++ran; }));
  engine_->scheduler().run_until([&] { return ran == Mailbox::kMostLetters; });
  EXPECT_TRUE(mailbox_.post([&] { ++ran; }));
  engine_->scheduler().run_until([&] { return ran == Mailbox::kMostLetters + 1; });
}

TEST_F(MailboxTest, WorkMayPostMore) {
  int ran = 0;
  EXPECT_TRUE(mailbox_.post([&] {
    ++ran;
    EXPECT_TRUE(mailbox_.post([&] { ++ran; }));
  }));
  engine_->scheduler().run_until([&] { return ran == 2; });
}

}  // namespace
}  // namespace ember
