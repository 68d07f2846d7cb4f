// Devices: order, waits, failures, wake-ups, and a simulated device whose seed decides.
#include "kernels/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "base/prng.h"

namespace ember {
namespace {

int64_t in_ms(int64_t ms) { return system_clock().now_us() + ms * 1000; }

// Waits for everything; statuses by ticket, each seen once.
std::map<Ticket, Status> drain(Device& device, size_t count) {
  std::map<Ticket, Status> seen;
  std::vector<Completion> out(7);
  while (seen.size() < count) {
    const size_t n = device.wait_any(in_ms(20000), out);
    EXPECT_GT(n, 0u) << "a completion was lost: " << seen.size() << " of " << count;
    if (n == 0) break;
    for (size_t i = 0; i < n; ++i) {
      EXPECT_TRUE(seen.emplace(out[i].ticket, out[i].status).second) << "delivered twice";
    }
  }
  return seen;
}

std::unique_ptr<Device> cpu(int workers) {
  CpuDeviceOptions options;
  options.workers = workers;
  options.host_workers = 4;
  return make_cpu_device(options);
}

// Every test of this suite holds for the CPU device with 1, 2 and 4 workers and the simulated one.
class DeviceTest : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Device> device_ = GetParam() == 0 ? make_sim_device(11) : cpu(GetParam());
};
INSTANTIATE_TEST_SUITE_P(All, DeviceTest, testing::Values(0, 1, 2, 4));

TEST_P(DeviceTest, MemoryIsZeroedAlignedAndMovable) {
  Result<Buffer> buffer = device_->allocate(10000);
  ASSERT_TRUE(buffer.ok());
  Buffer moved = std::move(buffer.value());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(moved.data()) % 4096, 0u);
  EXPECT_EQ(moved.size_bytes(), 10000u);
  for (size_t i = 0; i < 10000; ++i) ASSERT_EQ(moved.bytes()[i], std::byte{0});
  moved = Buffer();
  EXPECT_EQ(moved.data(), nullptr);
  const Result<Buffer> refused = device_->allocate_pinned(size_t{1} << 60);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCapacity);
  EXPECT_NE(refused.error().message.find("1152921504606846976"), std::string::npos);
}

TEST_P(DeviceTest, ProgramsRunInOrderOnTheSameMemory) {
  std::vector<float> h(100, 0.0f);
  const std::vector<float> one(100, 1.0f);
  std::vector<float> snapshots(100 * 100);
  std::vector<Program> programs(100);
  std::vector<Ticket> tickets;
  for (size_t i = 0; i < programs.size(); ++i) {
    programs[i].add(ResidualAddParams{100, h.data(), one.data(), DType::kF32});
    programs[i].add(BlockCopyParams{h.data(), snapshots.data() + i * 100, 400});
    tickets.push_back(device_->submit(programs[i]));
  }
  EXPECT_EQ(device_->outstanding(), 100u);
  EXPECT_EQ(drain(*device_, 100).size(), 100u);
  EXPECT_EQ(device_->outstanding(), 0u);
  for (size_t i = 0; i < 100; ++i) {
    for (size_t j = 0; j < 100; ++j) {
      ASSERT_EQ(snapshots[i * 100 + j], static_cast<float>(i + 1));
    }
  }
}

TEST_P(DeviceTest, AProgramGoesOnWhenItsTicketHasCompleted) {
  std::vector<float> h(64, 1.0f), x(64, 1.0f);
  const Ticket fetched = device_->run_host(HostLane::kRead, [&] {
    x.assign(64, 5.0f);
    return Status{};
  });
  Program program;
  program.add(WaitParams{fetched});
  program.add(ResidualAddParams{64, h.data(), x.data(), DType::kF32});
  device_->submit(program);
  for (const auto& [ticket, status] : drain(*device_, 2)) EXPECT_TRUE(status.ok());
  EXPECT_EQ(h[63], 6.0f);
  // The ticket was delivered long ago: waiting for it again does not hang.
  device_->submit(program);
  EXPECT_EQ(drain(*device_, 1).size(), 1u);
}

TEST_P(DeviceTest, AFailedTicketSkipsTheRestAndFailsTheProgram) {
  std::vector<float> h(64, 1.0f), x(64, 1.0f);
  const Ticket broken = device_->run_host(HostLane::kRead, []() -> Status {
    return {ErrorCode::kCorruption, "group 3: checksum"};
  });
  Program failing;
  failing.add(ResidualAddParams{64, h.data(), x.data(), DType::kF32});
  failing.add(WaitParams{broken});
  failing.add(ResidualAddParams{64, h.data(), x.data(), DType::kF32});
  Program next;
  next.add(ResidualAddParams{64, h.data(), x.data(), DType::kF32});
  const Ticket failed = device_->submit(failing);
  const Ticket good = device_->submit(next);
  std::map<Ticket, Status> seen = drain(*device_, 3);
  EXPECT_EQ(seen[failed].error().code, ErrorCode::kCorruption);
  EXPECT_EQ(seen[failed].error().message, "group 3: checksum");
  EXPECT_TRUE(seen[good].ok());
  EXPECT_EQ(h[0], 3.0f);
}

TEST_P(DeviceTest, WritesKeepTheirOrder) {
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    device_->run_host(HostLane::kWrite, [&order, i] {
      order.push_back(i);
      return Status{};
    });
    device_->run_host(HostLane::kRead, [] { return Status{}; });
  }
  drain(*device_, 400);
  ASSERT_EQ(order.size(), 200u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(DeviceTest, CopiesMoveTheirBytes) {
  std::vector<uint8_t> from(1000), to(1000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i);
  std::vector<Copy> list = {{from.data(), to.data() + 500, 500},
                            {from.data() + 500, to.data(), 500}};
  device_->copy(list);
  list.clear();
  drain(*device_, 1);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(to[i], static_cast<uint8_t>((i + 500) % 1000));
}

TEST_P(DeviceTest, WhatATaskThrowsIsAStatus) {
  const Ticket ticket =
      device_->run_host(HostLane::kRead, []() -> Status { throw std::runtime_error("boom"); });
  std::map<Ticket, Status> seen = drain(*device_, 1);
  EXPECT_EQ(seen[ticket].error().code, ErrorCode::kDevice);
  EXPECT_NE(seen[ticket].error().message.find("boom"), std::string::npos);
}

TEST_P(DeviceTest, ExternalTicketsAreDeliveredAndNotCounted) {
  const Ticket ticket = device_->external_ticket();
  EXPECT_EQ(device_->outstanding(), 0u);
  std::thread poster([&] { device_->post(ticket, Status{}); });
  poster.join();
  const std::map<Ticket, Status> seen = drain(*device_, 1);
  EXPECT_EQ(seen.begin()->first, ticket);
}

TEST_P(DeviceTest, NothingIsLostUnderLoad) {
  constexpr int kEach = 300;
  std::vector<float> h(32, 0.0f), x(32, 1.0f);
  Program program;
  program.add(ResidualAddParams{32, h.data(), x.data(), DType::kF32});
  program.add(ResidualAddParams{32, h.data(), x.data(), DType::kF32});
  std::vector<Ticket> external;
  for (int i = 0; i < kEach; ++i) external.push_back(device_->external_ticket());
  std::thread poster([&] {
    for (const Ticket ticket : external) device_->post(ticket, Status{});
  });
  std::atomic<int> ran{0};
  for (int i = 0; i < kEach; ++i) {
    device_->submit(program);
    device_->run_host(i % 2 == 0 ? HostLane::kRead : HostLane::kWrite, [&] {
      ++ran;
      return Status{};
    });
    device_->copy({});
  }
  poster.join();
  EXPECT_EQ(drain(*device_, 4 * kEach).size(), static_cast<size_t>(4 * kEach));
  EXPECT_EQ(ran, kEach);
  EXPECT_EQ(h[0], 2.0f * kEach);
}

TEST(CpuDeviceTest, WaitAnyReturnsAtItsDeadlineAndAtOnceWhenPosted) {
  const std::unique_ptr<Device> device = cpu(2);
  Completion out[1];
  const int64_t start = system_clock().now_us();
  EXPECT_EQ(device->wait_any(start + 30'000, out), 0u);
  EXPECT_GE(system_clock().now_us(), start + 30'000);
  const Ticket ticket = device->external_ticket();
  std::thread poster([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    device->post(ticket, Status{});
  });
  EXPECT_EQ(device->wait_any(in_ms(20000), out), 1u);
  EXPECT_LT(system_clock().now_us(), start + 10'000'000);
  poster.join();
}

TEST(CpuDeviceTest, CopiesDoNotWaitBehindReadsThatHang) {
  const std::unique_ptr<Device> device = cpu(1);
  std::atomic<bool> asleep{true};
  for (int i = 0; i < 20; ++i) {  // more than there are host workers
    device->run_host(HostLane::kRead, [&asleep] {
      while (asleep.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return Status{};
    });
  }
  const std::vector<uint8_t> from(100, 7);
  std::vector<uint8_t> to(100);
  for (int i = 0; i < 10; ++i) {
    const Copy copy = {from.data(), to.data() + 10 * i, 10};
    device->copy({&copy, 1});
  }
  EXPECT_EQ(drain(*device, 10).size(), 10u);
  EXPECT_EQ(to, from);
  asleep = false;
  EXPECT_EQ(drain(*device, 20).size(), 20u);
}

TEST(CpuDeviceTest, EndsWhileAProgramWaitsForWhatNeverComes) {
  std::vector<float> h(16, 0.0f), x(16, 1.0f);
  Program program;
  std::atomic<int> ran{0};
  {
    const std::unique_ptr<Device> device = cpu(2);
    program.add(WaitParams{device->external_ticket()});
    program.add(ResidualAddParams{16, h.data(), x.data(), DType::kF32});
    device->submit(program);
    for (int i = 0; i < 50; ++i) {
      device->run_host(HostLane::kWrite, [&] {
        ++ran;
        return Status{};
      });
    }
  }
  EXPECT_EQ(ran, 50);  // what was given to the write lane is done
  EXPECT_EQ(h[0], 0.0f);
}

// The order in which tickets complete, as a string of letters.
std::string sim_order(uint64_t seed) {
  const std::unique_ptr<Device> device = make_sim_device(seed);
  std::map<Ticket, char> names;
  Program program;
  for (const char c : {'a', 'b'}) names[device->submit(program)] = c;
  for (const char c : {'w', 'x'}) {
    names[device->run_host(HostLane::kWrite, [] { return Status{}; })] = c;
  }
  for (const char c : {'r', 's'}) {
    names[device->run_host(HostLane::kRead, [] { return Status{}; })] = c;
  }
  names[device->copy({})] = 'c';
  const Ticket external = device->external_ticket();
  names[external] = 'e';
  device->post(external, Status{});
  std::string order;
  Completion out[4];
  while (true) {
    const size_t n = device->wait_any(0, out);
    EXPECT_LE(n, 1u);
    if (n == 0) return order;
    order += names[out[0].ticket];
  }
}

TEST(SimDeviceTest, TheSeedDecidesTheOrderWithinTheRules) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string order = sim_order(seed);
    EXPECT_EQ(order, sim_order(seed));
    EXPECT_EQ(order.size(), 8u);
    EXPECT_LT(order.find('a'), order.find('b'));
    EXPECT_LT(order.find('w'), order.find('x'));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 80u);
}

TEST(SimDeviceTest, AProgramThatWaitsForNothingThatComesIsNotDelivered) {
  const std::unique_ptr<Device> device = make_sim_device(1);
  Program program;
  const Ticket external = device->external_ticket();
  program.add(WaitParams{external});
  device->submit(program);
  Completion out[1];
  EXPECT_EQ(device->wait_any(0, out), 0u);
  device->post(external, Status{});
  EXPECT_EQ(device->wait_any(0, out), 1u);
  EXPECT_EQ(device->wait_any(0, out), 1u);
  EXPECT_EQ(device->outstanding(), 0u);
}

}  // namespace
}  // namespace ember
