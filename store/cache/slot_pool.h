// Slot pool: which of a tier's fixed slots are taken, by whom, and whether they may be read.
//
// Journey    device_pool and host_tier -> [slot_pool] -> whoever holds a lease
// Owns       one state and one lease count for each slot; no bytes
// Invariant  a slot is free, filling, ready or draining; a leased slot is never given to another;
//            a pool dies without a lease out
// Threads    engine thread only
// Not here   the bytes of a slot (device_pool.h, host_tier.h), who is evicted
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ember {

// free -> filling -> ready -> (draining ->) free; a filling slot that nobody holds is free again.
enum class SlotState : uint8_t { kFree, kFilling, kReady, kDraining };

class SlotPool;

// The right to use a slot's bytes. Never expires; given back when destroyed. Move-only.
class SlotLease {
 public:
  SlotLease() = default;
  SlotLease(SlotLease&& other) noexcept { *this = std::move(other); }
  SlotLease& operator=(SlotLease&& other) noexcept;
  ~SlotLease() { release(); }

  explicit operator bool() const { return pool_ != nullptr; }
  int32_t slot() const { return slot_; }
  // A second lease of the same slot.
  SlotLease share() const;
  void release();

 private:
  friend class SlotPool;
  SlotLease(SlotPool* pool, int32_t slot) : pool_(pool), slot_(slot) {}
  SlotPool* pool_ = nullptr;
  int32_t slot_ = -1;
};

class SlotPool {
 public:
  explicit SlotPool(uint32_t slots);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // A free slot, now filling; nothing if there is none.
  std::optional<SlotLease> take();
  // Another lease of a slot that is filling or ready.
  SlotLease share(int32_t slot);
  // filling -> ready: its bytes are whole and proven. It stays when the last lease goes.
  void publish(int32_t slot);
  // ready -> filling: the lease holder writes it again. The caller has made it unfindable.
  void reopen(int32_t slot);
  // ready -> free, or draining until its last lease goes.
  void retire(int32_t slot);

  SlotState state(int32_t slot) const { return at(slot).state; }
  uint32_t leases(int32_t slot) const { return at(slot).leases; }
  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  uint32_t free_count() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t leased_count() const { return leased_; }  // slots with at least one lease

 private:
  friend class SlotLease;
  struct Slot {
    SlotState state = SlotState::kFree;
    uint32_t leases = 0;
  };
  const Slot& at(int32_t slot) const;
  Slot& at(int32_t slot) { return const_cast<Slot&>(std::as_const(*this).at(slot)); }
  void give_back(int32_t slot);
  void set_free(int32_t slot);

  std::vector<Slot> slots_;
  std::vector<int32_t> free_;  // the next one to take is at the back
  uint32_t leased_ = 0;
};

}  // namespace ember
