// Host tier: pinned memory where blocks wait between device and disk.
//
// Journey    device_pool -> [host_tier] -> disk_tier   (offload; reversed on restore)
// Owns       one pinned slab of slots * block_bytes, the slots' states, and one row of poison
// Invariant  only a ready slot is readable; one that is filled from the disk is poisoned until its
//            bytes are proven
// Threads    engine thread only; host tasks write slots whose lease outlives their ticket
// Not here   who is evicted (store/cache/block_ledger.h), the bytes of a record (store/record.h)
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/device.h"
#include "store/kv_layout.h"
#include "store/cache/slot_pool.h"

namespace ember {

class HostTier {
 public:
  // Errors: kCapacity when so much memory cannot be had.
  static Result<std::unique_ptr<HostTier>> make(Device& device, const KvLayout& layout,
                                                uint32_t slots);

  SlotPool& slots() { return slots_; }
  const SlotPool& slots() const { return slots_; }
  std::byte* at(int32_t slot) const {
    return slab_.bytes() + static_cast<size_t>(slot) * block_bytes_;
  }
  // row_bytes of kPoison, where the device's copies can read it.
  const std::byte* poison_row() const { return poison_.bytes(); }

 private:
  HostTier(Buffer slab, Buffer poison, size_t block_bytes, uint32_t slots)
      : slab_(std::move(slab)),
        poison_(std::move(poison)),
        block_bytes_(block_bytes),
        slots_(slots) {}
  Buffer slab_;
  Buffer poison_;
  size_t block_bytes_;
  SlotPool slots_;
};

}  // namespace ember
