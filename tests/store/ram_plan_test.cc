// One number for RAM and one for disk: the shares add up, or the least that would do is named.
#include "store/ram_plan.h"

#include <gtest/gtest.h>

#include "store/disk_plan.h"

namespace ember {
namespace {

KvLayout layout_of(uint32_t layers, uint32_t row_values) {
  Stream stream;
  stream.row_values = row_values;
  return KvLayout(layers, 64, stream);
}

uint64_t sum(const RamPlan& plan) {
  uint64_t total = 0;
  for (const auto& [name, bytes] : plan.rows()) total += bytes;
  return total;
}

TEST(RamPlanTest, SharesAddUpForEverySize) {
  const KvLayout demo = layout_of(6, 160);
  const KvLayout v3 = layout_of(61, 576);
  for (uint64_t ram = 64u << 20; ram < (uint64_t{64} << 30); ram = ram * 7 / 4 + 12345) {
    for (const KvLayout& layout : {demo, v3}) {
      const auto plan = plan_ram(ram, layout, 2048);
      if (!plan.ok()) continue;
      EXPECT_EQ(sum(*plan), ram);
      EXPECT_GE(plan->device_slots, 2048u / 64 + 1);
      EXPECT_GE(plan->host_slots, 4u);
      EXPECT_GE(plan->memtable_bytes, 8u << 20);
    }
  }
}

TEST(RamPlanTest, TheLeastThatIsNamedWouldDo) {
  const KvLayout v3 = layout_of(61, 576);
  const auto refused = plan_ram(1, v3, 4096);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  const std::string marker = "at least ";
  const size_t at = refused.error().message.find(marker);
  ASSERT_NE(at, std::string::npos);
  const uint64_t least = std::stoull(refused.error().message.substr(at + marker.size()));
  const auto plan = plan_ram(least, v3, 4096);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(sum(*plan), least);
  EXPECT_EQ(plan->device_slots, 4096u / 64 + 1);
  EXPECT_FALSE(plan_ram(least - 1, v3, 4096).ok());
}

TEST(RamPlanTest, DefaultsAreSane) {
  EXPECT_GT(default_ram_bytes(), 0u);
  const Result<uint64_t> disk = default_disk_bytes("/no/such/place/yet");
  EXPECT_LE(disk.ok() ? *disk : 0, uint64_t{20} << 30);
}

TEST(RamPlanTest, DiskShareIsHalfOfWhatAStoreCouldHave) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(share_of_disk("s", 8 * kGiB, std::nullopt).value(), 4 * kGiB);
  EXPECT_EQ(share_of_disk("s", 100 * kGiB, std::nullopt).value(), 20 * kGiB);
  EXPECT_EQ(share_of_disk("s", 6 * kGiB, 2 * kGiB).value(), 4 * kGiB) << "opened again: no other";
}

TEST(RamPlanTest, StoreOnAFullDiskKeepsWhatItHolds) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(share_of_disk("s", 0, 3 * kGiB).value(), 3 * kGiB);
  EXPECT_EQ(share_of_disk("s", 0, 1000).value(), kLeastDiskBytes);
}

TEST(RamPlanTest, NewStoreWithoutRoomIsRefusedByItsPath) {
  const Result<uint64_t> refused = share_of_disk("/full/store", 1 << 20, std::nullopt);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCapacity);
  EXPECT_NE(refused.error().message.find("/full/store"), std::string::npos);
  EXPECT_NE(refused.error().message.find("1.00 MiB free"), std::string::npos)
      << refused.error().message;
}

TEST(DiskPlanTest, SharesAddUp) {
  for (uint64_t disk = kLeastDiskBytes; disk < (uint64_t{1} << 40); disk = disk * 3 + 77) {
    const uint64_t log_bytes = disk % 2 == 0 ? 0 : disk / 4;
    const auto plan = plan_disk(disk, log_bytes);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->blocks_bytes + plan->ballast_bytes + plan->conversations_bytes +
                  plan->quarantine_bytes + plan->access_log_bytes + plan->shadows_bytes +
                  plan->namespaces_bytes + kStoreFilesBytes,
              disk);
    EXPECT_GT(plan->ballast_bytes, plan_epochs(plan->blocks_bytes).epoch_bytes);
    EXPECT_EQ(plan->access_log_bytes, log_bytes);
    EXPECT_GT(plan->blocks_bytes, disk / 4);
    EXPECT_LE(plan->conversations_bytes, disk / 4);
    EXPECT_GE(plan->conversations_bytes, kLeastConversationsBytes);
    EXPECT_LT(plan->tails_bytes, plan->conversations_bytes);
  }
  EXPECT_FALSE(plan_disk(kLeastDiskBytes - 1).ok());
  EXPECT_FALSE(plan_disk(kLeastDiskBytes, kLeastDiskBytes / 4 + 1).ok());
}

}  // namespace
}  // namespace ember
