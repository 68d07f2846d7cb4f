// Host pool: the threads that copy memory and run host tasks.
//
// Journey    device.copy, device.run_host -> [host_pool] -> ticket_board
// Owns       its threads and the queues before them
// Invariant  tasks of the write lane run one at a time, in order; copies have threads of their own:
//            they are short, a step waits for them, and a read may hang
// Threads    submitting: the engine thread; tasks run on the pool's
#pragma once

#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "kernels/device.h"
#include "kernels/ring.h"
#include "kernels/ticket_board.h"

namespace ember {

// Runs a task; what it throws becomes a kDevice status.
Status run_host_task(const HostTask& task);
void run_copies(std::span<const Copy> copies);

// A queue that threads wait at.
template <typename Job>
class HostQueue {
 public:
  void push(Job job) EMBER_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      jobs_.push(std::move(job));
    }
    ready_.notify_one();
  }
  // Waits for a job; nothing when the queue is closed and empty.
  std::optional<Job> pop() EMBER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (jobs_.empty() && !closed_) ready_.wait(mutex_);
    if (jobs_.empty()) return std::nullopt;
    return jobs_.pop();
  }
  void close() EMBER_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar ready_;
  Ring<Job> jobs_ EMBER_GUARDED_BY(mutex_);
  bool closed_ EMBER_GUARDED_BY(mutex_) = false;
};

class HostPool {
 public:
  HostPool(int readers, TicketBoard& board);
  // Runs what is queued to its end.
  ~HostPool();

  void copy(Ticket ticket, std::span<const Copy> copies);
  void run(HostLane lane, Ticket ticket, HostTask task);

 private:
  struct CopyJob {
    Ticket ticket;
    std::vector<Copy> copies;
  };
  struct TaskJob {
    Ticket ticket;
    HostTask task;
  };

  void serve_copies();
  void serve_tasks(HostQueue<TaskJob>& tasks);

  static constexpr int kCopiers = 2;  // few keep a machine's memory busy

  TicketBoard& board_;
  HostQueue<CopyJob> copies_;
  HostQueue<TaskJob> reads_;
  HostQueue<TaskJob> writes_;
  std::vector<std::thread> threads_;
};

}  // namespace ember
