// The replaced operators: they count, then do what the library's do.
#include "tests/support/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> all_threads{0};
thread_local uint64_t this_thread = 0;

void* counted(size_t bytes, size_t alignment) {
  all_threads.fetch_add(1, std::memory_order_relaxed);
  ++this_thread;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

constexpr size_t kPlainAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(size_t bytes) { return counted(bytes, kPlainAlignment); }
void* operator new[](size_t bytes) { return counted(bytes, kPlainAlignment); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }

namespace ember {

uint64_t allocations_of_all_threads() { return all_threads.load(std::memory_order_relaxed); }
uint64_t allocations_of_this_thread() { return this_thread; }

}  // namespace ember
