// Sim device: everything runs inside wait_any, one ticket a call, in an order drawn by a seed.
#include <deque>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "kernels/device.h"
#include "kernels/device_memory.h"
#include "kernels/host_pool.h"
#include "kernels/kernel_choice.h"
#include "kernels/solo_team.h"
#include "kernels/ticket_board.h"

namespace ember {
namespace {

class SimDevice final : public Device {
 public:
  explicit SimDevice(uint64_t seed) : kernels_(choose_kernels(true)), random_(seed) {}

  std::string kernel_family() const override { return kernels_.family; }
  int worker_count() const override { return 1; }

  Result<Buffer> allocate(size_t bytes) override { return allocate_pages(bytes, false); }
  Result<Buffer> allocate_pinned(size_t bytes) override { return allocate_pages(bytes, true); }

  Ticket submit(const Program& program) override {
    const Ticket ticket = board_.open(false);
    programs_.push_back(Running{ticket, &program, 0});
    return ticket;
  }
  Ticket copy(std::span<const Copy> copies) override {
    return add(loose_, [list = std::vector<Copy>(copies.begin(), copies.end())] {
      run_copies(list);
      return Status{};
    });
  }
  Ticket run_host(HostLane lane, HostTask task) override {
    return add(lane == HostLane::kWrite ? writes_ : loose_, std::move(task));
  }
  Ticket external_ticket() override { return board_.open(true); }
  void post(Ticket ticket, Status status) override { board_.post(ticket, std::move(status)); }

  size_t wait_any(int64_t, std::span<Completion> out) override {
    EMBER_CHECK(!out.empty(), "room for at least one completion");
    while (run_one()) {
      const size_t count = board_.take(out.first(1));
      if (count > 0) return count;
    }
    return 0;
  }
  size_t outstanding() const override { return board_.outstanding(); }

 private:
  struct Task {
    Ticket ticket;
    HostTask run;
  };
  struct Running {
    Ticket ticket;
    const Program* program = nullptr;
    size_t next_op = 0;
  };

  Ticket add(std::deque<Task>& queue, HostTask task) {
    const Ticket ticket = board_.open(false);
    queue.push_back(Task{ticket, std::move(task)});
    return ticket;
  }

  // Draws one of what may go on and lets it; false where nothing may.
  bool run_one() {
    const size_t posted = board_.completed() > 0 ? 1 : 0;
    const size_t program = program_may_run() ? 1 : 0;
    const size_t write = writes_.empty() ? 0 : 1;
    const size_t choices = posted + program + write + loose_.size();
    if (choices == 0) return false;
    size_t draw = random_.below(choices);
    if (draw < posted) return true;
    draw -= posted;
    if (draw < program) {
      run_program();
      return true;
    }
    draw -= program;
    std::deque<Task>& queue = draw < write ? writes_ : loose_;
    if (draw >= write) std::swap(loose_.front(), loose_[draw - write]);
    Task task = std::move(queue.front());
    queue.pop_front();
    Status status = run_host_task(task.run);
    task.run = nullptr;
    board_.complete(task.ticket, std::move(status));
    return true;
  }

  bool program_may_run() {
    if (programs_.empty()) return false;
    const Running& head = programs_.front();
    if (head.next_op == head.program->ops.size()) return true;
    const auto* wait = std::get_if<WaitParams>(&head.program->ops[head.next_op]);
    return wait == nullptr || board_.outcome(wait->ticket).has_value();
  }

  // Runs the first program to its end, or to a wait for something that has not happened.
  void run_program() {
    Running& head = programs_.front();
    Status status;
    for (; head.next_op < head.program->ops.size(); ++head.next_op) {
      const Op& op = head.program->ops[head.next_op];
      if (const auto* wait = std::get_if<WaitParams>(&op)) {
        std::optional<Status> outcome = board_.outcome(wait->ticket);
        if (!outcome.has_value()) return;
        status = *std::move(outcome);
        if (!status.ok()) break;
      } else {
        run_op(op, team_, kernels_.matmul);
        status = team_.take_verdict();
        if (!status.ok()) break;
      }
    }
    const Ticket ticket = head.ticket;
    programs_.pop_front();
    board_.complete(ticket, std::move(status));
  }

  Result<Buffer> allocate_pages(size_t bytes, bool pinned) {
    EMBER_ASSIGN(void* data, map_pages(bytes));
    return Buffer(this, data, bytes, pinned);
  }
  void free(void* data, size_t bytes, bool) override { unmap_pages(data, bytes); }

  const KernelChoice kernels_;
  Prng random_;
  SoloTeam team_;
  mutable TicketBoard board_;
  std::deque<Running> programs_;
  std::deque<Task> writes_;
  std::deque<Task> loose_;  // copies and reads
};

}  // namespace

std::unique_ptr<Device> make_sim_device(uint64_t seed) { return std::make_unique<SimDevice>(seed); }

}  // namespace ember
