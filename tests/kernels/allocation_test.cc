// Steady submission allocates nothing: counted by this program's own operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/clock.h"
#include "kernels/device.h"

namespace {

std::atomic<size_t> allocations{0};

void* counted(size_t bytes, size_t alignment) {
  ++allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return counted(bytes, 16); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }

namespace ember {
namespace {

TEST(AllocationTest, SteadySubmitsAllocateNothing) {
  CpuDeviceOptions options;
  options.workers = 2;
  const std::unique_ptr<Device> device = make_cpu_device(options);
  std::vector<float> x(9 * 40, 0.5f), w(50 * 40, 0.25f), y(9 * 50);
  Program program;
  MatmulParams matmul;
  matmul.rows = 9;
  matmul.n = 50;
  matmul.k = 40;
  matmul.x = x.data();
  matmul.x_dtype = matmul.w_dtype = matmul.y_dtype = DType::kF32;
  matmul.x_stride = 40;
  matmul.w = w.data();
  matmul.y = y.data();
  matmul.y_stride = 50;
  Completion out[4];
  const auto step = [&] {
    program.clear();
    for (int i = 0; i < 10; ++i) program.add(matmul);
    program.add(ResidualAddParams{450, y.data(), y.data(), DType::kF32});
    device->submit(program);
    ASSERT_EQ(device->wait_any(system_clock().now_us() + 20'000'000, out), 1u);
  };
  for (int i = 0; i < 8; ++i) step();
  const size_t before = allocations;
  for (int i = 0; i < 64; ++i) step();
  EXPECT_EQ(allocations - before, 0u);
}

}  // namespace
}  // namespace ember
