// Compute team: what becomes of a program when an operation fails on one worker.
#include "kernels/compute_team.h"

#include <gtest/gtest.h>

#include <atomic>

#include "kernels/cpu_team.h"

namespace ember {
namespace {

std::atomic<int> g_calls{0};

// Fails on the last worker where the product has no rows.
void failing_matmul(const MatmulParams& params, CpuTeam& team) {
  ++g_calls;
  if (params.rows == 0 && team.rank() == team.size() - 1) team.fail("the library gave up");
}

Status run(ComputeTeam& team, TicketBoard& board, const Program& program) {
  const Ticket ticket = board.open(false);
  team.enqueue(ticket, program);
  return board.wait_for(ticket);
}

TEST(ComputeTeamTest, FailedOperationEndsItsProgramAndNoOther) {
  for (const int workers : {1, 2, 5}) {
    TicketBoard board;
    ComputeTeam team(workers, failing_matmul, board);
    Program fails;
    fails.add(MatmulParams{.rows = 1});
    fails.add(MatmulParams{.rows = 0});
    fails.add(MatmulParams{.rows = 1});
    Program works;
    works.add(MatmulParams{.rows = 1});
    for (int round = 0; round < 200; ++round) {
      g_calls = 0;
      const Status failed = run(team, board, fails);
      ASSERT_FALSE(failed.ok());
      EXPECT_EQ(failed.error().code, ErrorCode::kDevice);
      EXPECT_EQ(failed.error().message, "the library gave up");
      EXPECT_EQ(g_calls, 2 * workers) << "the operation behind the failed one does not run";
      EXPECT_TRUE(run(team, board, works).ok());
    }
    board.close();
  }
}

}  // namespace
}  // namespace ember
