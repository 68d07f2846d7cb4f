// Many requests at once: each is answered as if it were alone, and each is answered once.
#include "engine/runtime/scheduler.h"

#include <map>

#include "tests/engine/runtime/engine_harness.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

TEST(SchedulerTest, RequestsInOneBatchAreAnsweredAsIfAlone) {
  const TempFolder folder;
  auto engine = must_open(small_options(folder / "store"));
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 12; ++i) {
    requests.push_back(small_request(20 + 13 * i, 100 + i / 2, 6 + static_cast<uint32_t>(i)));
  }
  std::vector<std::vector<TokenId>> alone;
  for (Request request : requests) {
    request.use_cache = false;
    alone.push_back(engine->run(std::move(request)).token_ids);
  }
  std::map<size_t, std::vector<TokenId>> together;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].on_done = [&together, i](const Outcome& outcome) {
      EXPECT_TRUE(outcome.status.ok());
      EXPECT_FALSE(together.contains(i)) << "answered twice";
      together[i] = outcome.token_ids;
    };
    ASSERT_TRUE(engine->scheduler().submit(requests[i]).ok());
  }
  engine->scheduler().run_until([&] { return together.size() == requests.size(); });
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(together[i], alone[i]) << i;
}

TEST(SchedulerTest, APrefixThatIsBeingComputedIsComputedOnce) {
  const TempFolder folder;
  auto engine = must_open(small_options(folder / "store"));
  constexpr size_t kShared = 192;  // three blocks
  std::vector<Outcome> outcomes;
  for (uint64_t i = 0; i < 6; ++i) {
    Request request = small_request(kShared, 40, 4);
    const Request own = small_request(10 + i, 50 + i, 4);
    request.prompt.insert(request.prompt.end(), own.prompt.begin(), own.prompt.end());
    request.on_done = [&outcomes](const Outcome& outcome) { outcomes.push_back(outcome); };
    ASSERT_TRUE(engine->scheduler().submit(std::move(request)).ok());
  }
  engine->scheduler().run_until([&] { return outcomes.size() == 6; });
  size_t computed_whole = 0;
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.status.ok());
    if (outcome.awaited_tokens == 0) {
      ++computed_whole;
      continue;
    }
    EXPECT_EQ(outcome.awaited_tokens, kShared);
    EXPECT_EQ(outcome.restore.total(), kShared);
  }
  EXPECT_EQ(computed_whole, 1u);
}

TEST(SchedulerTest, WhatRunsInTheBackgroundGivesWayToARequestAndGoesOnFromThere) {
  const TempFolder folder;
  EngineOptions options = small_options(folder / "store");
  options.chunk_tokens = 16;
  auto engine = must_open(options);
  const Request plain = small_request(230, 60, 1);
  std::vector<Outcome> ended;
  const auto submit_background = [&] {
    Request request = plain;
    request.background = true;
    request.on_done = [&ended](const Outcome& outcome) { ended.push_back(outcome); };
    const auto computed = std::make_shared<size_t>(0);
    request.on_prefill = [computed](size_t now, size_t) { *computed = now; };
    ASSERT_TRUE(engine->submit(std::move(request)).ok());
    engine->scheduler().run_until([&] { return *computed >= 128 || !ended.empty(); });
  };
  submit_background();
  ASSERT_TRUE(ended.empty());
  const Outcome asked = engine->run(small_request(40, 61, 4));
  EXPECT_TRUE(asked.status.ok());
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].status.error().code, ErrorCode::kBusy);
  const Foresight foresight = engine->scheduler().foresee(plain.prompt, {});
  EXPECT_GE(foresight.match.tokens, 128u) << "what it had computed stays";
  EXPECT_LT(foresight.match.tokens, 229u);
  EXPECT_GT(foresight.plan.compute_us, 0);
  submit_background();
  engine->scheduler().run_until([&] { return ended.size() == 2; });
  EXPECT_TRUE(ended[1].status.ok());
  EXPECT_GE(ended[1].restore.total(), foresight.match.tokens / 64 * 64);
  ASSERT_TRUE(engine->make_durable());  // its tail is written behind it
  EXPECT_EQ(engine->scheduler().foresee(plain.prompt, {}).match.tokens, 229u);
}

TEST(SchedulerTest, ARequestInTheBackgroundWaitsForThoseThatRun) {
  const TempFolder folder;
  auto engine = must_open(small_options(folder / "store"));
  std::vector<char> order;
  Request first = small_request(30, 62, 20);
  first.on_done = [&order](const Outcome&) { order.push_back('f'); };
  Request behind = small_request(30, 63, 1);
  behind.background = true;
  behind.on_done = [&order](const Outcome& outcome) {
    order.push_back(outcome.status.ok() ? 'b' : 'x');
  };
  ASSERT_TRUE(engine->submit(std::move(first)).ok());
  ASSERT_TRUE(engine->submit(std::move(behind)).ok());
  engine->scheduler().run_until([&] { return order.size() == 2; });
  EXPECT_EQ(std::string(order.begin(), order.end()), "fb");
}

TEST(SchedulerTest, ARequestFindsItsTenantsBlocksAndPublishedOnesOnly) {
  const TempFolder folder;
  auto engine = must_open(small_options(folder / "store"));
  const Request prompt = small_request(193, 41, 2);
  const auto restored = [&](RequestScope scope) {
    Request request = prompt;
    request.scope = std::move(scope);
    const Outcome outcome = engine->run(std::move(request));
    EXPECT_TRUE(outcome.status.ok());
    return outcome.restore.total();
  };
  EXPECT_EQ(restored({.tenant = "acme"}), 0u);
  EXPECT_EQ(restored({.tenant = "acme"}), 192u);
  EXPECT_EQ(restored({.tenant = "zenith"}), 0u);
  EXPECT_EQ(restored({.tenant = "lab", .publish_tokens = 128, .may_publish = true}), 0u);
  EXPECT_EQ(restored({.tenant = "guest"}), 128u);
  Request refused = prompt;
  refused.scope = {.tenant = "guest", .publish_tokens = 128};
  EXPECT_EQ(engine->run(std::move(refused)).status.error().code, ErrorCode::kInvalidArgument);
}

TEST(SchedulerTest, APromptThatFillsTheContextIsRefusedWithBothLengths) {
  auto engine = must_open(small_options(""));
  const Outcome outcome = engine->run(small_request(256, 5, 1));
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(outcome.status.error().message.find("256"), std::string::npos);
}

TEST(SchedulerTest, AnAnswerEndsWhereTheContextEnds) {
  auto engine = must_open(small_options(""));
  const Outcome outcome = engine->run(small_request(250, 6, 100));
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.finish, FinishReason::kLength);
  EXPECT_EQ(outcome.token_ids.size(), 6u);
}

TEST(SchedulerTest, AFullQueueAnswersBusyAndCancelEndsEveryRequestOnce) {
  auto engine = must_open(small_options(""));
  size_t done = 0;
  size_t accepted = 0;
  Status last;
  for (int i = 0; i < 100 && last.ok(); ++i) {
    Request request = small_request(10, 7, 5);
    request.on_done = [&done](const Outcome& outcome) {
      EXPECT_EQ(outcome.status.error().code, ErrorCode::kCancelled);
      ++done;
    };
    const Result<uint64_t> id = engine->scheduler().submit(std::move(request));
    if (id.ok()) {
      ++accepted;
    } else {
      last = id.error();
    }
  }
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().code, ErrorCode::kBusy);
  engine->scheduler().cancel_all();
  EXPECT_EQ(done, accepted);
  EXPECT_TRUE(engine->run(small_request(10, 8, 2)).status.ok()) << "the engine goes on";
}

TEST(SchedulerTest, CancellingInTheMiddleOfAStepReleasesTheSlots) {
  const TempFolder folder;
  auto engine = must_open(small_options(folder / "store"));
  size_t drawn = 0;
  bool ended = false;
  Request request = small_request(100, 9, 100);
  request.on_token = [&drawn](TokenId) { ++drawn; };
  request.on_done = [&ended](const Outcome&) { ended = true; };
  ASSERT_TRUE(engine->scheduler().submit(std::move(request)).ok());
  engine->scheduler().run_until([&] { return drawn == 5; });
  engine->scheduler().cancel_all();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(engine->make_durable());
  const Outcome again = engine->run(small_request(100, 9, 5));
  EXPECT_GE(again.restore.total(), 64u) << "what was computed before the cancel is used";
}

}  // namespace
}  // namespace ember
