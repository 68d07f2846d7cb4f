// Solo team: one worker, for a simulated device and for tests of single operations; and a worker
// that runs an operation alone within another one.
//
// Journey    sim_device -> [solo_team] -> the operations' *_cpu.cc
// Owns       its scratch
// Threads    one
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "base/result.h"
#include "kernels/cpu_team.h"

namespace ember {

// Memory that grows and is kept, aligned to 64 bytes; what it held is lost when it grows.
class ScratchMemory {
 public:
  void* at_least(size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t bytes_ = 0;
};

class SoloTeam final : public CpuTeam {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void* scratch(size_t bytes) override { return memory_.at_least(bytes); }
  void fail(const char* reason) override { verdict_ = {ErrorCode::kDevice, reason}; }
  // How the operations since the last call ended.
  Status take_verdict() { return std::exchange(verdict_, Status{}); }

 private:
  ScratchMemory memory_;
  Status verdict_;
};

// One worker of a team in the midst of its operation, with all of another operation to itself.
class LoneWorker final : public CpuTeam {
 public:
  // `memory`: this worker's, for nothing else; both stay alive.
  LoneWorker(CpuTeam& team, ScratchMemory& memory) : team_(team), memory_(memory) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void* scratch(size_t bytes) override { return memory_.at_least(bytes); }
  void fail(const char* reason) override { team_.fail(reason); }

 private:
  CpuTeam& team_;
  ScratchMemory& memory_;
};

}  // namespace ember
