// The child process that drives emberkv: lines, ends, kills and bounded waits.
#include "tools/journey_demo/child_process.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tools/journey_demo/chat_client.h"

namespace ember {
namespace {

TEST(ChildProcessTest, LinesGoInAndComeBack) {
  auto child = ChildProcess::start({"/bin/cat"});
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE((*child)->write("one\ntwo\nrest").ok());
  EXPECT_EQ((*child)->read_line()->value(), "one");
  EXPECT_EQ((*child)->read_line()->value(), "two");
  (*child)->close_input();
  EXPECT_EQ(*(*child)->read_rest(), "rest");
  EXPECT_EQ(*(*child)->wait(), 0);
}

TEST(ChildProcessTest, ASilentChildEndsTheWait) {
  auto child = ChildProcess::start({"/bin/sleep", "60"});
  ASSERT_TRUE(child.ok());
  const int64_t start_us = system_clock().now_us();
  EXPECT_FALSE((*child)->read_line(50'000).ok());
  EXPECT_FALSE((*child)->wait(50'000).ok());
  EXPECT_LT(system_clock().now_us() - start_us, 20'000'000);
  (*child)->kill_now();
  EXPECT_EQ(*(*child)->wait(), 128 + 9);
}

TEST(ChildProcessTest, TheExitCodeAndErrorsAreKept) {
  const auto result = run_command({"/bin/sh", "-c", "echo out; echo bad >&2; exit 3"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "bad\n");
}

TEST(ChildProcessTest, AProgramThatIsNotThereEndsWith127) {
  const auto result = run_command({"/nowhere/program"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 127);
}

TEST(ChildProcessTest, WritingToADeadChildIsAnError) {
  auto child = ChildProcess::start({"/bin/true"});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(*(*child)->wait(), 0);
  EXPECT_FALSE((*child)->write("anyone?\n", 100'000).ok());
}

TEST(ChatClientTest, ALineThatIsNoAnswerIsRefused) {
  EXPECT_FALSE(parse_answer("{}").ok());
  EXPECT_FALSE(parse_answer("nothing").ok());
  EXPECT_FALSE(parse_ready("{\"event\": \"ready\"}").ok());
  EXPECT_EQ(event_of("{\"event\": \"delta\"}"), "delta");
  EXPECT_EQ(event_of("no JSON"), "");
}

}  // namespace
}  // namespace ember
