// Boundary: the two equalities of a restored prefix, checked for one length.
//
// Journey    rig -> [boundary] -> tests of chosen lengths and of every length
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/rig.h"

namespace ember {

// Writes a prefix of `length` tokens, takes it away from `tiers`, and feeds it with `more` tokens
// behind it. E0: the restored latents are the written ones. E1 and E2: all latents and the logits
// are those of a run that computes everything.
inline void expect_exact_after_loss(Rig& rig, size_t length, size_t more,
                                    const std::vector<Tier>& tiers, uint64_t seed) {
  SCOPED_TRACE("length " + std::to_string(length) + ", tiers lost " + std::to_string(tiers.size()));
  const std::vector<TokenId> all = rig.random_tokens(length + more, seed);
  const std::vector<TokenId> prefix(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length));
  const FeedResult written = rig.feed(prefix);
  rig.sync();
  for (Tier tier : tiers) rig.cache().drop_tier(tier);
  const FeedResult resumed = rig.feed(all);
  EXPECT_EQ(resumed.report.total(), length);
  EXPECT_EQ(resumed.computed_tokens, more);
  EXPECT_TRUE(std::equal(written.latents.begin(), written.latents.end(), resumed.latents.begin()));
  const FeedResult cold = rig.feed_cold(all);
  EXPECT_EQ(resumed.latents, cold.latents);
  EXPECT_EQ(resumed.last_logits, cold.last_logits);
}

}  // namespace ember
