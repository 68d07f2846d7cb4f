// Host pool: several threads for reads, a few for copies, one for writes.
#include "kernels/host_pool.h"

#include <cstring>
#include <exception>
#include <string>
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
  for (int i = 0; i < kCopiers; ++i) threads_.emplace_back([this] { serve_copies(); });
  for (int i = 0; i < readers; ++i) threads_.emplace_back([this] { serve_tasks(reads_); });
  threads_.emplace_back([this] { serve_tasks(writes_); });
}

HostPool::~HostPool() {
  copies_.close();
  reads_.close();
  writes_.close();
  for (std::thread& thread : threads_) thread.join();
}

void HostPool::copy(Ticket ticket, std::span<const Copy> copies) {
  copies_.push(CopyJob{ticket, {copies.begin(), copies.end()}});
}

void HostPool::run(HostLane lane, Ticket ticket, HostTask task) {
  (lane == HostLane::kWrite ? writes_ : reads_).push(TaskJob{ticket, std::move(task)});
}

void HostPool::serve_copies() {
  while (const std::optional<CopyJob> job = copies_.pop()) {
    run_copies(job->copies);
    board_.complete(job->ticket, Status{});
  }
}

// What the task captured is gone before its ticket completes.
void HostPool::serve_tasks(HostQueue<TaskJob>& tasks) {
  while (std::optional<TaskJob> job = tasks.pop()) {
    Status status = run_host_task(job->task);
    job->task = nullptr;
    board_.complete(job->ticket, std::move(status));
  }
}

}  // namespace ember
