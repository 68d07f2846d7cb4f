// Compute team: worker 0 leads, taking jobs and deciding waits; the others follow in lockstep.
#include "kernels/compute_team.h"

#include <utility>

#include "kernels/solo_team.h"

namespace ember {
namespace {

// About 20 us of spinning: longer than the gap between two operations or two decode steps.
constexpr int kSpins = 800;

}  // namespace

class ComputeTeam::Worker final : public CpuTeam {
 public:
  Worker(ComputeTeam& team, int rank) : team_(team), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return team_.workers_; }
  void barrier() override { team_.meet(); }
  void* scratch(size_t bytes) override { return memory_.at_least(bytes); }
  void fail(const char* reason) override { team_.fail(op, reason); }

  size_t op = 0;  // that is run now

 private:
  ComputeTeam& team_;
  const int rank_;
  ScratchMemory memory_;
};

ComputeTeam::ComputeTeam(int workers, MatmulFunction matmul, TicketBoard& board)
    : workers_(workers),
      // Spinning for a worker that has no core of its own only keeps it from running.
      spins_(static_cast<unsigned>(workers) > std::thread::hardware_concurrency() ? 0 : kSpins),
      matmul_(matmul),
      board_(board) {
  for (int rank = 0; rank < workers; ++rank) {
    threads_.emplace_back([this, rank] {
      Worker worker(*this, rank);
      if (rank == 0) {
        lead(worker);
      } else {
        follow(worker);
      }
    });
  }
}

ComputeTeam::~ComputeTeam() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  queued_.advance();
  for (std::thread& thread : threads_) thread.join();
}

void ComputeTeam::enqueue(Ticket ticket, const Program& program) {
  {
    MutexLock lock(mutex_);
    jobs_.push(Job{ticket, &program});
  }
  queued_.advance();
}

bool ComputeTeam::next_job(Job& job) {
  while (true) {
    const uint32_t seen = queued_.value();
    {
      MutexLock lock(mutex_);
      if (!jobs_.empty()) {
        job = jobs_.pop();
        return true;
      }
      if (stopping_) return false;
    }
    queued_.wait(seen, spins_, -1);
  }
}

void ComputeTeam::fail(size_t op, const char* reason) {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = {ErrorCode::kDevice, reason};
  failed_op_.store(op, std::memory_order_release);
}

void ComputeTeam::lead(Worker& worker) {
  Job job;
  while (next_job(job)) {
    current_ = job.program;
    verdict_ = Status{};
    failed_op_.store(kNone, std::memory_order_release);
    started_.advance();
    run(*job.program, worker);
    if (failed_op_.load(std::memory_order_acquire) != kNone) {
      MutexLock lock(mutex_);
      verdict_ = std::exchange(failure_, Status{});
    }
    board_.complete(job.ticket, std::exchange(verdict_, Status{}));
  }
  current_ = nullptr;
  started_.advance();
}

void ComputeTeam::follow(Worker& worker) {
  for (uint32_t seen = 0;; ++seen) {
    started_.wait_change(seen, spins_);
    if (current_ == nullptr) return;
    run(*current_, worker);
  }
}

void ComputeTeam::run(const Program& program, Worker& worker) {
  for (worker.op = 0; worker.op < program.ops.size(); ++worker.op) {
    const Op& op = program.ops[worker.op];
    if (const auto* wait = std::get_if<WaitParams>(&op)) {
      if (worker.rank() == 0) verdict_ = board_.wait_for(wait->ticket);
      meet();
      if (!verdict_.ok()) break;
    } else {
      run_op(op, worker, matmul_);
      meet();
      if (failed_op_.load(std::memory_order_acquire) <= worker.op) break;
    }
  }
  // The leader clears the verdict of a failed program only when all have read it.
  meet();
}

void ComputeTeam::meet() {
  if (workers_ == 1) return;
  const uint32_t seen = met_.value();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_) {
    arrived_.store(0, std::memory_order_relaxed);
    met_.advance();
  } else {
    met_.wait_change(seen, spins_);
  }
}

}  // namespace ember
