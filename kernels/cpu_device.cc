// CPU device: a compute team for programs, a host pool for copies and tasks, one ticket board.
#include <sched.h>

#include <utility>

#include "kernels/compute_team.h"
#include "kernels/device.h"
#include "kernels/device_memory.h"
#include "kernels/host_pool.h"
#include "kernels/kernel_choice.h"
#include "kernels/ticket_board.h"

namespace ember {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options)
      : kernels_(choose_kernels(options.allow_onednn)),
        pool_(std::make_unique<HostPool>(std::max(1, options.host_workers), board_)),
        team_(std::make_unique<ComputeTeam>(options.workers > 0 ? options.workers : usable_cores(),
                                            kernels_.matmul, board_)) {}

  // Host tasks first: programs may wait for them. What is still pending then never comes.
  ~CpuDevice() override {
    pool_.reset();
    board_.close();
    team_.reset();
  }

  std::string kernel_family() const override { return kernels_.family; }
  int worker_count() const override { return team_->size(); }

  Result<Buffer> allocate(size_t bytes) override { return allocate_pages(bytes, false); }
  Result<Buffer> allocate_pinned(size_t bytes) override { return allocate_pages(bytes, true); }

  Ticket submit(const Program& program) override {
    const Ticket ticket = board_.open(false);
    team_->enqueue(ticket, program);
    return ticket;
  }
  Ticket copy(std::span<const Copy> copies) override {
    const Ticket ticket = board_.open(false);
    pool_->copy(ticket, copies);
    return ticket;
  }
  Ticket run_host(HostLane lane, HostTask task) override {
    const Ticket ticket = board_.open(false);
    pool_->run(lane, ticket, std::move(task));
    return ticket;
  }
  Ticket external_ticket() override { return board_.open(true); }
  void post(Ticket ticket, Status status) override { board_.post(ticket, std::move(status)); }

  size_t wait_any(int64_t deadline_us, std::span<Completion> out) override {
    return board_.wait(deadline_us, out);
  }
  size_t outstanding() const override { return board_.outstanding(); }

 private:
  Result<Buffer> allocate_pages(size_t bytes, bool pinned) {
    EMBER_ASSIGN(void* data, map_pages(bytes));
    return Buffer(this, data, bytes, pinned);
  }
  void free(void* data, size_t bytes, bool) override { unmap_pages(data, bytes); }

  const KernelChoice kernels_;
  mutable TicketBoard board_;
  std::unique_ptr<HostPool> pool_;
  std::unique_ptr<ComputeTeam> team_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace ember
