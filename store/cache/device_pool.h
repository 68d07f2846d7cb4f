// Device pool: the fixed slots in device memory that attention reads.
//
// Journey    model forward -> [device_pool] -> host_tier   (offload; reversed on restore)
// Owns       one device buffer of slots * block_bytes, and the slots' states
// Invariant  a slot holds one block in the layout's order; only its lease holders touch it
// Threads    engine thread only; kernels and copies run on the Device and report by ticket
// Not here   who is evicted (store/cache/block_ledger.h)
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/device.h"
#include "kernels/latent_pack.h"
#include "store/kv_layout.h"
#include "store/cache/slot_pool.h"

namespace ember {

class DevicePool {
 public:
  // Errors: kCapacity when the device has not that much memory.
  static Result<std::unique_ptr<DevicePool>> make(Device& device, const KvLayout& layout,
                                                  uint32_t slots);

  SlotPool& slots() { return slots_; }
  const SlotPool& slots() const { return slots_; }
  std::byte* at(int32_t slot) const {
    return memory_.bytes() + static_cast<size_t>(slot) * layout_.block_bytes();
  }
  // One layer of the whole pool; block_tables and table_stride are the caller's.
  LatentCacheView layer_view(uint32_t layer) const;

 private:
  DevicePool(Buffer memory, const KvLayout& layout, uint32_t slots)
      : memory_(std::move(memory)), layout_(layout), slots_(slots) {}
  Buffer memory_;
  KvLayout layout_;
  SlotPool slots_;
};

}  // namespace ember
