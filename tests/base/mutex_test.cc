// Mutex: it excludes, and a condition variable waits on it.
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ember {
namespace {

struct Counter {
  Mutex mutex;
  int value EMBER_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, CountsOfManyThreadsAddUp) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < 10'000; ++i) {
        const MutexLock lock(counter.mutex);
        ++counter.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(counter.mutex);
  EXPECT_EQ(counter.value, 40'000);
}

TEST(MutexTest, AWaiterIsWokenWhenItsConditionHolds) {
  Counter counter;
  CondVar changed;
  std::thread setter([&] {
    {
      const MutexLock lock(counter.mutex);
      counter.value = 1;
    }
    changed.notify_one();
  });
  {
    const MutexLock lock(counter.mutex);
    while (counter.value == 0) changed.wait(counter.mutex);
    EXPECT_EQ(counter.value, 1);
  }
  setter.join();
}

}  // namespace
}  // namespace ember
