// The offload queue's next step, without a disk.
#include "store/cache/offload_plan.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

OffloadItem item(OffloadStage stage, bool parent_stored = true, size_t parent_item = kNoItem,
                 int64_t not_before_us = 0) {
  return {stage, parent_stored, parent_item, not_before_us};
}

using Indices = std::vector<size_t>;

TEST(OffloadPlanTest, NothingToDoIsNothing) {
  OffloadView view;
  view.host_slots = 4;
  const OffloadStep step = plan_offload(view);
  EXPECT_TRUE(step.copy.empty());
  EXPECT_TRUE(step.write.empty());
  EXPECT_FALSE(step.flush);
}

TEST(OffloadPlanTest, CopiesInOrderUpToTheHostShare) {
  const std::vector<OffloadItem> items = {item(OffloadStage::kHeld), item(OffloadStage::kQueued),
                                          item(OffloadStage::kQueued), item(OffloadStage::kQueued)};
  OffloadView view;
  view.items = items;
  view.host_slots = 3;
  EXPECT_EQ(plan_offload(view).copy, (std::vector<size_t>{1, 2}));
}

TEST(OffloadPlanTest, WritesParentsBeforeChildrenAndLetsOthersPass) {
  const std::vector<OffloadItem> items = {
      item(OffloadStage::kHeld), item(OffloadStage::kHeld, false, 0),
      item(OffloadStage::kCopying, false, 1), item(OffloadStage::kHeld, false, 2),
      item(OffloadStage::kHeld)};
  OffloadView view;
  view.items = items;
  view.host_slots = 5;
  EXPECT_EQ(plan_offload(view).write, (Indices{0, 1, 4})) << "3 waits for 2, which is on its way";
  view.write_batch = 1;
  EXPECT_EQ(plan_offload(view).write, (Indices{0}));
  view.lane_idle = false;
  EXPECT_TRUE(plan_offload(view).write.empty());
}

TEST(OffloadPlanTest, CodesInOrderAsFarAsMemoryGoesAndWritesWhatIsCoded) {
  std::vector<OffloadItem> items = {item(OffloadStage::kHeld), item(OffloadStage::kHeld, false, 0),
                                    item(OffloadStage::kHeld, false, 1),
                                    item(OffloadStage::kHeld)};
  items[1].coded = items[2].coded = items[3].coded = false;
  OffloadView view;
  view.items = items;
  view.coded_blocks = 3;
  OffloadStep step = plan_offload(view);
  EXPECT_EQ(step.code, (Indices{1, 2})) << "the first is one of the three";
  EXPECT_EQ(step.write, (Indices{0}));
  view.lane_idle = false;
  EXPECT_EQ(plan_offload(view).code, (Indices{1, 2})) << "coding goes on beside a write";
  view.may_write = false;
  view.lane_idle = true;
  step = plan_offload(view);
  EXPECT_TRUE(step.code.empty());
  EXPECT_TRUE(step.write.empty()) << "the budget is used up";
}

TEST(OffloadPlanTest, ParentThatComesDownLastFindsRoomForItsPayload) {
  std::vector<OffloadItem> items = {item(OffloadStage::kCopying),
                                    item(OffloadStage::kHeld, false, 0),
                                    item(OffloadStage::kHeld, false, 1)};
  for (OffloadItem& each : items) each.coded = false;
  OffloadView view;
  view.items = items;
  view.coded_blocks = 2;
  EXPECT_TRUE(plan_offload(view).code.empty()) << "none of them can be written before it is there";
  items[0].stage = OffloadStage::kHeld;
  EXPECT_EQ(plan_offload(view).code, (Indices{0, 1}));
}

TEST(OffloadPlanTest, BlocksThatAreDownGoOnBehindSomeThatFindNoHostSlot) {
  std::vector<OffloadItem> items = {item(OffloadStage::kQueued),
                                    item(OffloadStage::kQueued, false, 0),
                                    item(OffloadStage::kHeld),
                                    item(OffloadStage::kHeld, false, 2)};
  for (OffloadItem& each : items) each.coded = false;
  OffloadView view;
  view.items = items;
  view.host_slots = 2;
  view.coded_blocks = 1;
  const OffloadStep step = plan_offload(view);
  EXPECT_TRUE(step.copy.empty());
  EXPECT_EQ(step.code, (Indices{2}));
}

TEST(OffloadPlanTest, WhatAllInHostSlotsWaitForComesDownBeyondTheirShare) {
  std::vector<OffloadItem> items = {item(OffloadStage::kQueued),
                                    item(OffloadStage::kHeld, false, 0),
                                    item(OffloadStage::kHeld, false, 1)};
  OffloadView view;
  view.items = items;
  view.host_slots = 2;
  const OffloadStep step = plan_offload(view);
  EXPECT_EQ(step.copy, (Indices{0}));
  EXPECT_TRUE(step.must_copy);
  items[0].stage = OffloadStage::kCopying;
  EXPECT_FALSE(plan_offload(view).must_copy);
}

TEST(OffloadPlanTest, RefusedBlockHoldsBackItsDescendantsOnly) {
  const std::vector<OffloadItem> items = {item(OffloadStage::kHeld, true, kNoItem, 100),
                                          item(OffloadStage::kHeld, false, 0),
                                          item(OffloadStage::kHeld)};
  OffloadView view;
  view.items = items;
  view.now_us = 99;
  EXPECT_EQ(plan_offload(view).write, (Indices{2}));
  view.now_us = 100;
  EXPECT_EQ(plan_offload(view).write, (Indices{0, 1, 2}));
  view.now_us = 0;
  view.closing = true;
  EXPECT_EQ(plan_offload(view).write, (Indices{0, 1, 2}));
}

TEST(OffloadPlanTest, BlockWithoutAStoredParentIsDropped) {
  const std::vector<OffloadItem> items = {item(OffloadStage::kHeld, false),
                                          item(OffloadStage::kCopying, false),
                                          item(OffloadStage::kQueued, false)};
  OffloadView view;
  view.items = items;
  view.host_slots = 8;
  const OffloadStep step = plan_offload(view);
  EXPECT_EQ(step.drop, (std::vector<size_t>{0, 2}));
  EXPECT_TRUE(step.copy.empty());
  EXPECT_TRUE(step.write.empty());
}

TEST(OffloadPlanTest, FlushesForEachReasonAndNoOther) {
  OffloadView view;
  view.now_us = 1'000'000;
  view.unflushed = 3;
  view.oldest_unflushed_us = 900'000;
  view.flush_age_us = 200'000;
  EXPECT_FALSE(plan_offload(view).flush);
  view.oldest_unflushed_us = 800'000;
  EXPECT_TRUE(plan_offload(view).flush) << "age";
  view.oldest_unflushed_us = 900'000;
  view.sync_waits = true;
  EXPECT_TRUE(plan_offload(view).flush) << "sync";
  view.sync_waits = false;
  view.turn_ended_us = 900'000;
  EXPECT_FALSE(plan_offload(view).flush);
  view.turn_ended_us = 1'000'000 - kIdleFlushUs;
  EXPECT_TRUE(plan_offload(view).flush) << "idle after a turn";
  const std::vector<OffloadItem> items = {item(OffloadStage::kQueued)};
  view.items = items;
  EXPECT_FALSE(plan_offload(view).flush) << "not idle";
  view.items = {};
  view.turn_ended_us = -1;
  view.closing = true;
  EXPECT_TRUE(plan_offload(view).flush) << "closing";
  view.unflushed = 0;
  EXPECT_FALSE(plan_offload(view).flush);
}

}  // namespace
}  // namespace ember
