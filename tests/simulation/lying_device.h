// A device that breaks its word now and then: what a simulation must notice.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/device.h"

namespace ember::testing {

enum class DeviceLie : uint8_t {
  kNone,
  kCopyLeftOut,     // reports a copy that it did not make
  kCopyAfterwards,  // reports a copy before it has made it
};

class LyingDevice final : public Device {
 public:
  // Every `period`-th list of copies is not as it should be.
  LyingDevice(std::unique_ptr<Device> honest, DeviceLie lie, uint64_t period)
      : honest_(std::move(honest)), lie_(lie), period_(period) {}

  std::string kernel_family() const override { return honest_->kernel_family(); }
  int worker_count() const override { return honest_->worker_count(); }
  Result<Buffer> allocate(size_t bytes) override { return honest_->allocate(bytes); }
  Result<Buffer> allocate_pinned(size_t bytes) override { return honest_->allocate_pinned(bytes); }
  Ticket submit(const Program& program) override { return honest_->submit(program); }
  Ticket run_host(HostLane lane, HostTask task) override {
    return honest_->run_host(lane, std::move(task));
  }
  Ticket external_ticket() override { return honest_->external_ticket(); }
  void post(Ticket ticket, Status status) override { honest_->post(ticket, std::move(status)); }
  size_t outstanding() const override { return honest_->outstanding(); }

  Ticket copy(std::span<const Copy> copies) override {
    if (lie_ == DeviceLie::kNone || ++lists_ % period_ != 0) return honest_->copy(copies);
    if (lie_ == DeviceLie::kCopyLeftOut) return honest_->copy(copies.first(copies.size() - 1));
    late_.push_back({kLateWaits, {copies.begin(), copies.end()}});
    return honest_->copy({});
  }

  size_t wait_any(int64_t deadline_us, std::span<Completion> out) override {
    for (Late& late : late_) --late.waits;
    while (!late_.empty() && late_.front().waits <= 0) {
      for (const Copy& copy : late_.front().copies) std::memcpy(copy.to, copy.from, copy.bytes);
      late_.pop_front();
    }
    return honest_->wait_any(deadline_us, out);
  }

 private:
  static constexpr int kLateWaits = 400;
  struct Late {
    int waits = 0;
    std::vector<Copy> copies;
  };
  // Buffers name the honest device, which frees them.
  void free(void*, size_t, bool) override {}

  std::unique_ptr<Device> honest_;
  DeviceLie lie_;
  uint64_t period_;
  uint64_t lists_ = 0;
  std::deque<Late> late_;
};

}  // namespace ember::testing
