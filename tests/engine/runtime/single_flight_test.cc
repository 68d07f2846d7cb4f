// Who waits for a prefix that another request is computing, and until when.
#include "engine/runtime/single_flight.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ember {
namespace {

constexpr size_t kSpan = 64;

// A sequence over the first `length` tokens of a stream, other from token `branch` on.
std::unique_ptr<Sequence> sequence_of(uint64_t id, size_t length, size_t branch, Phase phase) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->phase = phase;
  sequence->request.prompt.resize(length);
  std::iota(sequence->request.prompt.begin(), sequence->request.prompt.end(), 10);
  for (size_t i = branch; i < length; ++i) {
    sequence->request.prompt[i] = static_cast<TokenId>(10'000 * id + i);
  }
  sequence->prompt_tokens = length;
  return sequence;
}

TEST(SingleFlightTest, WaitsForTheRunningPromptThatAgreesFurthestInWholeBlocks) {
  std::vector<std::unique_ptr<Sequence>> running;
  running.push_back(sequence_of(1, 400, 130, Phase::kPrefill));
  running.push_back(sequence_of(2, 400, 300, Phase::kRestoring));
  running.push_back(sequence_of(3, 400, 390, Phase::kDecode));  // its prompt is done
  const auto queued = sequence_of(4, 500, 500, Phase::kQueued);
  EXPECT_TRUE(awaits_prefix(*queued, running, 64, kSpan));
  EXPECT_EQ(queued->awaited_id, 2u);
  EXPECT_EQ(queued->awaited_tokens, 256u);
  EXPECT_EQ(queued->outcome.awaited_tokens, 192u);

  running[1]->computed = 255;
  EXPECT_TRUE(still_awaits(*queued, running));
  running[1]->computed = 256;
  EXPECT_FALSE(still_awaits(*queued, running)) << "committed: a match finds it now";
}

TEST(SingleFlightTest, WhatTheCacheKnowsOrNobodyCommitsIsNotAwaited) {
  std::vector<std::unique_ptr<Sequence>> running;
  running.push_back(sequence_of(1, 400, 400, Phase::kPrefill));
  const auto queued = sequence_of(4, 300, 300, Phase::kQueued);
  EXPECT_FALSE(awaits_prefix(*queued, running, 256, kSpan)) << "299 tokens hold four whole blocks";
  EXPECT_TRUE(awaits_prefix(*queued, running, 192, kSpan));
  running[0]->request.use_cache = false;
  EXPECT_FALSE(awaits_prefix(*queued, running, 192, kSpan));
}

TEST(SingleFlightTest, OnlyWhatTheOtherPublishesIsAwaitedAcrossTenants) {
  std::vector<std::unique_ptr<Sequence>> running;
  running.push_back(sequence_of(1, 400, 400, Phase::kPrefill));
  Request& other = running[0]->request;
  const auto queued = sequence_of(4, 300, 300, Phase::kQueued);
  queued->request.scope.tenant = "acme";
  EXPECT_TRUE(awaits_prefix(*queued, running, 0, kSpan)) << "shared blocks are everyone's";
  EXPECT_EQ(queued->awaited_tokens, 256u);
  other.scope.tenant = "acme";
  EXPECT_TRUE(awaits_prefix(*queued, running, 0, kSpan));
  EXPECT_EQ(queued->awaited_tokens, 256u);
  other.scope = {.tenant = "zenith", .publish_tokens = 150, .may_publish = true};
  EXPECT_TRUE(awaits_prefix(*queued, running, 0, kSpan));
  EXPECT_EQ(queued->awaited_tokens, 128u);
  other.scope.publish_tokens = 0;
  EXPECT_FALSE(awaits_prefix(*queued, running, 0, kSpan));
  queued->request.scope.tenant.clear();
  EXPECT_FALSE(awaits_prefix(*queued, running, 0, kSpan));
}

TEST(SingleFlightTest, TheLastTokenOfAPromptIsItsOwn) {
  std::vector<std::unique_ptr<Sequence>> running;
  running.push_back(sequence_of(1, 128, 128, Phase::kPrefill));
  const auto queued = sequence_of(4, 128, 128, Phase::kQueued);
  EXPECT_TRUE(awaits_prefix(*queued, running, 0, kSpan));
  EXPECT_EQ(queued->awaited_tokens, 64u);
}

TEST(SingleFlightTest, AWaitEndsWithTheRequestThatIsWaitedFor) {
  std::vector<std::unique_ptr<Sequence>> running;
  running.push_back(sequence_of(1, 400, 400, Phase::kPrefill));
  const auto queued = sequence_of(4, 300, 300, Phase::kQueued);
  EXPECT_TRUE(awaits_prefix(*queued, running, 0, kSpan));
  running[0]->phase = Phase::kDone;
  EXPECT_FALSE(still_awaits(*queued, running));
  running.clear();
  EXPECT_FALSE(still_awaits(*queued, running));
  EXPECT_FALSE(awaits_prefix(*queued, running, 0, kSpan));
}

}  // namespace
}  // namespace ember
