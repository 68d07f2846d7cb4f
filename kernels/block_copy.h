// Block copy: one run of bytes moved inside a program: step inputs up, sampled ids down.
//
// Journey    step inputs -> [block_copy] -> device memory, and back
// Not here   copies between tiers, which are tickets of their own (Device::copy)
#pragma once

#include <cstddef>

namespace ember {

class CpuTeam;

struct BlockCopyParams {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
};

void block_copy_cpu(const BlockCopyParams& params, CpuTeam& team);

}  // namespace ember
