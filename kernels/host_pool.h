// Host pool: the threads that copy memory and run host tasks.
//
// Journey    device.copy, device.run_host -> [host_pool] -> ticket_board
// Owns       its threads and the queues before them
// Invariant  tasks of the write lane run one at a time, in order; copies go before reads: they
//            are short and a step waits for them
// Threads    submitting: the engine thread; tasks run on the pool's
#pragma once

#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "kernels/device.h"
#include "kernels/ring.h"
#include "kernels/ticket_board.h"

namespace ember {

// Runs a task; what it throws becomes a kDevice status.
Status run_host_task(const HostTask& task);
void run_copies(std::span<const Copy> copies);

class HostPool {
 public:
  HostPool(int readers, TicketBoard& board);
  // Runs what is queued to its end.
  ~HostPool();

  void copy(Ticket ticket, std::span<const Copy> copies) EMBER_EXCLUDES(mutex_);
  void run(HostLane lane, Ticket ticket, HostTask task) EMBER_EXCLUDES(mutex_);

 private:
  struct CopyJob {
    Ticket ticket;
    std::vector<Copy> copies;
  };
  struct TaskJob {
    Ticket ticket;
    HostTask task;
  };

  void serve_reads() EMBER_EXCLUDES(mutex_);
  void serve_writes() EMBER_EXCLUDES(mutex_);
  void finish(TaskJob job);

  TicketBoard& board_;
  Mutex mutex_;
  CondVar read_ready_;
  CondVar write_ready_;
  Ring<CopyJob> copies_ EMBER_GUARDED_BY(mutex_);
  Ring<TaskJob> reads_ EMBER_GUARDED_BY(mutex_);
  Ring<TaskJob> writes_ EMBER_GUARDED_BY(mutex_);
  bool stopping_ EMBER_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ember
