// The restore plan's bounds.
#include "engine/runtime/restore_plan.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

TEST(RestorePlanTest, TheLastTokenIsAlwaysComputed) {
  BlockCache::Match match;
  match.tokens = 100;
  EXPECT_EQ(plan_restore(100, match).restore_tokens, 99u);
  EXPECT_EQ(plan_restore(100, match).compute_tokens, 1u);
  EXPECT_EQ(plan_restore(1, match).restore_tokens, 0u);
}

TEST(RestorePlanTest, WhatIsKnownIsRestoredAndTheRestComputed) {
  BlockCache::Match match;
  match.tokens = 64;
  EXPECT_EQ(plan_restore(100, match).restore_tokens, 64u);
  EXPECT_EQ(plan_restore(100, match).compute_tokens, 36u);
  match.tokens = 0;
  EXPECT_EQ(plan_restore(7, match).compute_tokens, 7u);
}

}  // namespace
}  // namespace ember
