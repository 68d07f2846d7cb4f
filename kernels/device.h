// Device: where latents are computed and moved; all its work is asynchronous and reports by ticket.
//
// Journey    engine -> [device] -> engine; a forward step, a copy, a host task are each a ticket
// Owns       the memory it allocated, its workers and the one completion queue
// Invariant  a ticket completes exactly once, and is delivered by wait_any exactly once
// Threads    one thread (the engine's) submits and waits; workers belong to the device
// Not here   what a step computes (kernels/program.h), what is copied when (store/, engine/)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/program.h"
#include "kernels/ticket.h"

namespace ember {

class Device;

// Memory of a device, or host memory that the device's copies can reach. Move-only; freed at end.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* owner, void* data, size_t bytes, bool pinned)
      : owner_(owner), data_(data), bytes_(bytes), pinned_(pinned) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return data_; }
  std::byte* bytes() const { return static_cast<std::byte*>(data_); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t size_bytes() const { return bytes_; }

 private:
  Device* owner_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  bool pinned_ = false;
};

// One run of bytes to move between device and pinned memory, in either direction.
struct Copy {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
};

struct Completion {
  Ticket ticket;
  Status status;
};

// Runs on one of the device's host workers: disk reads and writes, encoding, decoding.
// It must touch only what it was given and report through its status.
using HostTask = std::function<Status()>;

// Host tasks of the lane `kWrite` run one at a time in the order of submission, so that a parent is
// written before its child; those of `kRead` run in parallel, in any order.
enum class HostLane { kRead, kWrite };

class Device {
 public:
  virtual ~Device() = default;

  // For the numerics build of a record (kernels/kernel_choice.h).
  virtual std::string kernel_family() const = 0;
  // Workers that compute a program (1 for a simulated device).
  virtual int worker_count() const = 0;

  // Zeroed lazily by the operating system where it can be; aligned to 4,096 bytes.
  // Errors: kCapacity with the size that was asked for.
  virtual Result<Buffer> allocate(size_t bytes) = 0;
  virtual Result<Buffer> allocate_pinned(size_t bytes) = 0;

  // Runs the program's operations in order. Programs run in the order of submission.
  // The program and all memory that it names stay alive and untouched until the ticket completes.
  virtual Ticket submit(const Program& program) = 0;
  // Does all the copies (their list is copied at once; the memory stays in use until completion).
  virtual Ticket copy(std::span<const Copy> copies) = 0;
  virtual Ticket run_host(HostLane lane, HostTask task) = 0;
  // A ticket that another thread completes with `post`: how a new request wakes the engine thread.
  virtual Ticket external_ticket() = 0;
  virtual void post(Ticket ticket, Status status) = 0;  // Threads: any

  // Moves completed tickets into `out` (as many as fit) and returns their number. Waits until there
  // is at least one or `deadline_us` (of system_clock().now_us()) has passed; 0 completions then.
  // A simulated device runs work here, in the order that its seed chooses, and never waits.
  virtual size_t wait_any(int64_t deadline_us, std::span<Completion> out) = 0;
  // Tickets submitted and not yet delivered, external ones not counted.
  virtual size_t outstanding() const = 0;

 private:
  friend class Buffer;
  virtual void free(void* data, size_t bytes, bool pinned) = 0;
};

struct CpuDeviceOptions {
  int workers = 0;       // threads that compute; 0: one for each core that this process may use
  int host_workers = 8;  // threads for host tasks of the read lane (mostly waiting for the disk)
  bool allow_onednn = true;  // false: the portable kernels, whatever the CPU can do
};

// The CPU as a device: a team of workers for programs, a pool for copies and host tasks.
std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

// For tests: everything runs inside wait_any, a ticket a call, chosen by the seed among those that
// may run next (programs keep their order, so does the write lane; copies and reads run in any
// order and late). Computes with the same kernels as the CPU device.
std::unique_ptr<Device> make_sim_device(uint64_t seed);

}  // namespace ember
