// Block copy on the CPU: each worker moves its part.
#include "kernels/block_copy.h"

#include <cstring>

#include "kernels/cpu_team.h"

namespace ember {

void block_copy_cpu(const BlockCopyParams& params, CpuTeam& team) {
  const auto [first, last] = team.share(params.bytes, 4096);
  if (first == last) return;
  std::memcpy(static_cast<char*>(params.to) + first,
              static_cast<const char*>(params.from) + first, last - first);
}

}  // namespace ember
