// Who is admitted next.
#include "engine/runtime/admission_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace ember {
namespace {

std::optional<size_t> next(const std::vector<Waiting>& waiting, size_t per_tenant = 0) {
  return next_to_admit(waiting, per_tenant);
}

TEST(AdmissionPlanTest, OneTenantsRequestsComeInTheirOrder) {
  EXPECT_EQ(next({{.tenant_running = 2}, {.tenant_running = 2}}), 0u);
  EXPECT_EQ(next({{.set_aside = true, .tenant_running = 2}, {.tenant_running = 2}}), 1u);
  EXPECT_EQ(next({}), std::nullopt);
}

TEST(AdmissionPlanTest, TheTenantWithFewestRunningIsNext) {
  EXPECT_EQ(next({{.tenant_running = 3, .tenant_last_turn = 1},
                  {.tenant_running = 3, .tenant_last_turn = 1},
                  {.tenant_running = 1, .tenant_last_turn = 9}}),
            2u);
}

TEST(AdmissionPlanTest, AmongEqualsTheOneServedLongestAgo) {
  EXPECT_EQ(next({{.tenant_running = 1, .tenant_last_turn = 9},
                  {.tenant_running = 1, .tenant_last_turn = 4}}),
            1u);
}

TEST(AdmissionPlanTest, NobodyPassesOneThatFoundNoRoom) {
  EXPECT_EQ(next({{.tenant_running = 0},
                  {.found_no_room = true, .tenant_running = 5, .tenant_last_turn = 7}}),
            1u);
}

TEST(AdmissionPlanTest, ATenantAtItsLimitWaits) {
  EXPECT_EQ(next({{.tenant_running = 2}, {.tenant_running = 2}}, 2), std::nullopt);
  EXPECT_EQ(next({{.tenant_running = 2}, {.tenant_running = 1}}, 2), 1u);
}

TEST(AdmissionPlanTest, AFloodLeavesAQuarterOfTheQueue) {
  EXPECT_EQ(queue_share(64), 48u);
  EXPECT_EQ(queue_share(1), 1u);
}

}  // namespace
}  // namespace ember
