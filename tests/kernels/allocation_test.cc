// Steady submission allocates nothing: counted in every thread.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "kernels/device.h"
#include "tests/support/allocation_counter.h"

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
  const uint64_t before = allocations_of_all_threads();
  for (int i = 0; i < 64; ++i) step();
  EXPECT_EQ(allocations_of_all_threads() - before, 0u);
}

}  // namespace
}  // namespace ember
