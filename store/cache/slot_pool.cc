// Slot states and leases.
#include "store/cache/slot_pool.h"

#include "base/check.h"

namespace ember {

SlotLease& SlotLease::operator=(SlotLease&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    slot_ = std::exchange(other.slot_, -1);
  }
  return *this;
}

SlotLease SlotLease::share() const {
  EMBER_CHECK(pool_ != nullptr, "an empty lease is shared");
  return pool_->share(slot_);
}

void SlotLease::release() {
  if (pool_ == nullptr) return;
  std::exchange(pool_, nullptr)->give_back(std::exchange(slot_, -1));
}

SlotPool::SlotPool(uint32_t slots) : slots_(slots) {
  free_.reserve(slots);
  for (uint32_t i = slots; i > 0; --i) free_.push_back(static_cast<int32_t>(i - 1));
}

SlotPool::~SlotPool() { EMBER_CHECK(leased_ == 0, "a slot pool dies while a lease is out"); }

std::optional<SlotLease> SlotPool::take() {
  if (free_.empty()) return std::nullopt;
  const int32_t slot = free_.back();
  free_.pop_back();
  at(slot) = {SlotState::kFilling, 1};
  ++leased_;
  return SlotLease(this, slot);
}

SlotLease SlotPool::share(int32_t slot) {
  Slot& shared = at(slot);
  EMBER_CHECK(shared.state == SlotState::kFilling || shared.state == SlotState::kReady,
              "only a filling or a ready slot can be leased again");
  if (shared.leases++ == 0) ++leased_;
  return SlotLease(this, slot);
}

void SlotPool::publish(int32_t slot) {
  EMBER_CHECK(at(slot).state == SlotState::kFilling, "only a filling slot becomes ready");
  at(slot).state = SlotState::kReady;
}

void SlotPool::reopen(int32_t slot) {
  EMBER_CHECK(at(slot).state == SlotState::kReady && at(slot).leases > 0,
              "only a ready slot that is held can be written again");
  at(slot).state = SlotState::kFilling;
}

void SlotPool::retire(int32_t slot) {
  EMBER_CHECK(at(slot).state == SlotState::kReady, "only a ready slot can be retired");
  if (at(slot).leases == 0) {
    set_free(slot);
  } else {
    at(slot).state = SlotState::kDraining;
  }
}

const SlotPool::Slot& SlotPool::at(int32_t slot) const {
  EMBER_CHECK(slot >= 0 && static_cast<size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<size_t>(slot)];
}

void SlotPool::give_back(int32_t slot) {
  Slot& held = at(slot);
  EMBER_CHECK(held.leases > 0, "a lease is given back twice");
  if (--held.leases > 0) return;
  --leased_;
  if (held.state != SlotState::kReady) set_free(slot);
}

void SlotPool::set_free(int32_t slot) {
  at(slot).state = SlotState::kFree;
  free_.push_back(slot);
}

}  // namespace ember
