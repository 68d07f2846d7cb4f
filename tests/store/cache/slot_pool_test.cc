// Slot states, leases, and what may not be done with them.
#include "store/cache/slot_pool.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

TEST(SlotPoolTest, FillingSlotThatNobodyHoldsIsFreeAgain) {
  SlotPool pool(2);
  {
    auto lease = pool.take();
    ASSERT_TRUE(lease);
    EXPECT_EQ(pool.state(lease->slot()), SlotState::kFilling);
    EXPECT_EQ(pool.free_count(), 1u);
  }
  EXPECT_EQ(pool.free_count(), 2u);
}

TEST(SlotPoolTest, ReadySlotStaysWithoutALease) {
  SlotPool pool(1);
  auto lease = pool.take();
  const int32_t slot = lease->slot();
  pool.publish(slot);
  lease.reset();
  EXPECT_EQ(pool.state(slot), SlotState::kReady);
  EXPECT_FALSE(pool.take());
  pool.retire(slot);
  EXPECT_EQ(pool.state(slot), SlotState::kFree);
}

TEST(SlotPoolTest, RetiredSlotDrainsUntilItsLastLeaseGoes) {
  SlotPool pool(1);
  auto first = pool.take();
  const int32_t slot = first->slot();
  pool.publish(slot);
  SlotLease second = pool.share(slot);
  pool.retire(slot);
  EXPECT_EQ(pool.state(slot), SlotState::kDraining);
  first.reset();
  EXPECT_EQ(pool.leases(slot), 1u);
  second.release();
  EXPECT_EQ(pool.state(slot), SlotState::kFree);
}

TEST(SlotPoolTest, MovedLeaseIsGivenBackOnce) {
  SlotPool pool(2);
  SlotLease lease = std::move(*pool.take());
  SlotLease other = std::move(lease);
  EXPECT_FALSE(lease);  // NOLINT(bugprone-use-after-move): what a moved lease is
  other = std::move(*pool.take());
  EXPECT_EQ(pool.free_count(), 1u);
  other.release();
  EXPECT_EQ(pool.leased_count(), 0u);
}

TEST(SlotPoolTest, ReopenedSlotIsFreeAfterItsHolder) {
  SlotPool pool(1);
  auto lease = pool.take();
  const int32_t slot = lease->slot();
  pool.publish(slot);
  pool.reopen(slot);
  EXPECT_EQ(pool.state(slot), SlotState::kFilling);
  lease.reset();
  EXPECT_EQ(pool.free_count(), 1u);
}

TEST(SlotPoolDeathTest, MisuseAborts) {
  EXPECT_DEATH(
      {
        auto pool = std::make_unique<SlotPool>(1);
        auto lease = pool->take();
        pool.reset();
      },
      "lease is out");
  SlotPool pool(1);
  EXPECT_DEATH((void)pool.share(0), "filling or a ready");
  EXPECT_DEATH(pool.publish(0), "becomes ready");
  EXPECT_DEATH((void)pool.state(1), "no such slot");
}

}  // namespace
}  // namespace ember
