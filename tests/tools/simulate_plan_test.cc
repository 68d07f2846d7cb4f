// Capacities of a simulation: what was asked for, as bytes and as blocks.
#include "tools/commands/look/simulate_plan.h"

#include <gtest/gtest.h>

#include "store/disk_plan.h"

namespace ember {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(SimulatePlanTest, SizesAndSharesAreRead) {
  const auto asked = parse_capacities("512MiB,2.5%,20GiB");
  ASSERT_TRUE(asked.ok()) << asked.error().message;
  ASSERT_EQ(asked->size(), 3u);
  EXPECT_EQ((*asked)[0].disk_bytes, 512u << 20);
  EXPECT_EQ((*asked)[1].percent, 2.5);
  EXPECT_EQ((*asked)[2].disk_bytes, 20 * kGiB);
  for (const char* wrong :
       {"", "0%", "101%", "x%", "%", "1GiB,,2GiB", "many", "0", "5%x", "nan%"}) {
    EXPECT_FALSE(parse_capacities(wrong).ok()) << wrong;
  }
}

TEST(SimulatePlanTest, ADiskBytesGivesBlocksTheirShare) {
  for (const uint64_t bytes : {64 * (kGiB >> 10), kGiB, 20 * kGiB, 333 * kGiB}) {
    const uint64_t share = plan_disk(bytes)->blocks_bytes;
    const uint64_t least = disk_bytes_for(share);
    EXPECT_LE(least, bytes);
    EXPECT_GE(plan_disk(least)->blocks_bytes, share);
  }
  EXPECT_EQ(disk_bytes_for(1), kLeastDiskBytes);
}

TEST(SimulatePlanTest, CapacitiesRiseAndThePresentOneIsAmongThem) {
  const uint64_t present_blocks = plan_disk(4 * kGiB)->blocks_bytes / 100'000;
  const CapacityBasis basis{.distinct_blocks = 1'000'000,
                            .block_bytes = 100'000,
                            .present_disk_bytes = 4 * kGiB,
                            .present_blocks = present_blocks};
  for (const char* text : {"", "4GiB,1GiB,1GiB,50%"}) {
    const std::vector<CapacityAsked> asked =
        *text == '\0' ? std::vector<CapacityAsked>() : *parse_capacities(text);
    const auto planned = plan_capacities(asked, basis);
    ASSERT_TRUE(planned.ok()) << planned.error().message;
    size_t present = 0;
    for (size_t i = 0; i < planned->size(); ++i) {
      if (i > 0) {
        EXPECT_LT((*planned)[i - 1].blocks, (*planned)[i].blocks);
        EXPECT_LT((*planned)[i - 1].disk_bytes, (*planned)[i].disk_bytes);
      }
      present += (*planned)[i].present ? 1u : 0u;
    }
    EXPECT_EQ(present, 1u);
    EXPECT_EQ(planned->size(), *text == '\0' ? 5u : 3u);
  }
}

TEST(SimulatePlanTest, WithoutSizesThereAreShares) {
  const CapacityBasis basis{.distinct_blocks = 1000};
  const auto planned = plan_capacities({}, basis);
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(planned->front().blocks, 10u);
  EXPECT_EQ(planned->back().blocks, 1000u);
  EXPECT_EQ(planned->back().disk_bytes, 0u);
  const auto sized = plan_capacities({{kGiB, 0}}, basis);
  ASSERT_FALSE(sized.ok());
  EXPECT_NE(sized.error().message.find("--block-bytes"), std::string::npos);
  const auto small = plan_capacities({{1000, 0}}, {.distinct_blocks = 9, .block_bytes = 10});
  ASSERT_FALSE(small.ok());
  EXPECT_NE(small.error().message.find("least store"), std::string::npos);
}

}  // namespace
}  // namespace ember
