// CPU team: the workers that run one operation together, each knowing its rank.
//
// Journey    cpu_device -> [cpu_team] -> the operations' *_cpu.cc
// Invariant  every worker calls barrier() the same number of times within an operation
// Threads    one object a worker; barrier() is the only meeting point
// Not here   which worker does what (each operation; results never depend on size())
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ember {

class CpuTeam {
 public:
  virtual ~CpuTeam() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  // Memory of this worker alone, kept and grown between operations; aligned to 64 bytes.
  virtual void* scratch(size_t bytes) = 0;
  // This worker could not do its part: the program ends behind this operation, as kDevice. Only
  // for operations without a barrier.
  virtual void fail(const char* reason) = 0;

  // This worker's share [first, last) of n items, cut at multiples of `grain`.
  std::pair<size_t, size_t> share(size_t n, size_t grain = 1) const {
    const size_t grains = (n + grain - 1) / grain;
    const auto workers = static_cast<size_t>(size());
    const auto mine = static_cast<size_t>(rank());
    const size_t first = grains * mine / workers * grain;
    const size_t last = grains * (mine + 1) / workers * grain;
    return {std::min(first, n), std::min(last, n)};
  }
};

}  // namespace ember
