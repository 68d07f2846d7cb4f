// Compute team: the threads that run programs together, operation by operation.
//
// Journey    device.submit -> [compute_team] -> run_op -> ticket_board
// Owns       its threads, each with its scratch
// Invariant  programs run one at a time in the order of submission; between two operations all
//            workers meet; behind one that failed none runs; an idle team sleeps
// Threads    enqueue: the engine thread
// Not here   copies and host tasks (host_pool.h)
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "kernels/event_word.h"
#include "kernels/ring.h"
#include "kernels/run_op.h"
#include "kernels/ticket_board.h"

namespace ember {

class ComputeTeam {
 public:
  ComputeTeam(int workers, MatmulFunction matmul, TicketBoard& board);
  // Runs what is queued to its end (the board is closed, so no wait can last), then joins.
  ~ComputeTeam();

  int size() const { return workers_; }
  void enqueue(Ticket ticket, const Program& program) EMBER_EXCLUDES(mutex_);

 private:
  struct Job {
    Ticket ticket;
    const Program* program = nullptr;
  };
  class Worker;
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void lead(Worker& worker);
  void follow(Worker& worker);
  bool next_job(Job& job) EMBER_EXCLUDES(mutex_);
  void fail(size_t op, const char* reason) EMBER_EXCLUDES(mutex_);
  void run(const Program& program, Worker& worker);
  void meet();

  const int workers_;
  const int spins_;
  const MatmulFunction matmul_;
  TicketBoard& board_;

  Mutex mutex_;
  Ring<Job> jobs_ EMBER_GUARDED_BY(mutex_);
  bool stopping_ EMBER_GUARDED_BY(mutex_) = false;
  EventWord queued_;  // a job, or the end

  // Written by the leader before started_ or a meeting, read by the others after it.
  EventWord started_;
  const Program* current_ = nullptr;  // null: the end
  Status verdict_;
  // The first operation that failed. Nobody runs an operation before all have met behind the one
  // before it, so all see the same where they meet.
  std::atomic<size_t> failed_op_{kNone};
  Status failure_ EMBER_GUARDED_BY(mutex_);

  std::atomic<int> arrived_{0};
  EventWord met_;
  std::vector<std::thread> threads_;
};

}  // namespace ember
