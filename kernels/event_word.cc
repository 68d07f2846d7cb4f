// Event word on Linux futexes, whose timeouts run on the monotonic clock.
#include "kernels/event_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace ember {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(uint32_t), "a futex is a plain 32-bit word");
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void EventWord::advance() {
  word_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  futex(word_, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr);
}

void EventWord::wait(uint32_t seen, int spins, int64_t timeout_us) {
  for (int i = 0; i < spins; ++i) {
    if (value() != seen) return;
    relax();
  }
  timespec timeout{};
  if (timeout_us >= 0) {
    timeout.tv_sec = timeout_us / 1000000;
    timeout.tv_nsec = timeout_us % 1000000 * 1000;
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (value() == seen) futex(word_, FUTEX_WAIT_PRIVATE, seen, timeout_us < 0 ? nullptr : &timeout);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace ember
