// Host pool: several threads for copies and reads, one for writes.
#include "kernels/host_pool.h"

#include <cstring>
#include <exception>
#include <utility>

namespace ember {

Status run_host_task(const HostTask& task) {
  try {
    return task();
  } catch (const std::exception& error) {
    return {ErrorCode::kDevice, std::string("host task threw: ") + error.what()};
  } catch (...) {
    return {ErrorCode::kDevice, "host task threw something that is no std::exception"};
  }
}

void run_copies(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

HostPool::HostPool(int readers, TicketBoard& board) : board_(board) {
  for (int i = 0; i < readers; ++i) threads_.emplace_back([this] { serve_reads(); });
  threads_.emplace_back([this] { serve_writes(); });
}

HostPool::~HostPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  read_ready_.notify_all();
  write_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HostPool::copy(Ticket ticket, std::span<const Copy> copies) {
  {
    MutexLock lock(mutex_);
    copies_.push(CopyJob{ticket, {copies.begin(), copies.end()}});
  }
  read_ready_.notify_one();
}

void HostPool::run(HostLane lane, Ticket ticket, HostTask task) {
  const bool write = lane == HostLane::kWrite;
  {
    MutexLock lock(mutex_);
    (write ? writes_ : reads_).push(TaskJob{ticket, std::move(task)});
  }
  (write ? write_ready_ : read_ready_).notify_one();
}

// What the task captured is gone before its ticket completes.
void HostPool::finish(TaskJob job) {
  Status status = run_host_task(job.task);
  job.task = nullptr;
  board_.complete(job.ticket, std::move(status));
}

void HostPool::serve_reads() {
  while (true) {
    CopyJob copy;
    TaskJob task;
    {
      MutexLock lock(mutex_);
      while (copies_.empty() && reads_.empty() && !stopping_) read_ready_.wait(mutex_);
      if (!copies_.empty()) {
        copy = copies_.pop();
      } else if (!reads_.empty()) {
        task = reads_.pop();
      } else {
        return;
      }
    }
    if (copy.ticket) {
      run_copies(copy.copies);
      board_.complete(copy.ticket, Status{});
    } else {
      finish(std::move(task));
    }
  }
}

void HostPool::serve_writes() {
  while (true) {
    TaskJob task;
    {
      MutexLock lock(mutex_);
      while (writes_.empty() && !stopping_) write_ready_.wait(mutex_);
      if (writes_.empty()) return;
      task = writes_.pop();
    }
    finish(std::move(task));
  }
}

}  // namespace ember
