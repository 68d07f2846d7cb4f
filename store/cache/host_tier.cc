// The host slab.
#include "store/cache/host_tier.h"

#include <cstring>

#include "store/cache/slot_copies.h"

namespace ember {

Result<std::unique_ptr<HostTier>> HostTier::make(Device& device, const KvLayout& layout,
                                                 uint32_t slots) {
  EMBER_ASSIGN(Buffer slab, device.allocate_pinned(layout.block_bytes() * slots));
  EMBER_ASSIGN(Buffer poison, device.allocate_pinned(layout.row_bytes()));
  std::memset(poison.data(), static_cast<int>(kPoison), layout.row_bytes());
  return std::unique_ptr<HostTier>(
      new HostTier(std::move(slab), std::move(poison), layout.block_bytes(), slots));
}

}  // namespace ember
