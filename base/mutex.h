// Mutex: std::mutex with Clang's thread-safety annotations, for the few places that need one.
//
// Journey    none; between the engine thread and the workers
// Invariant  what a mutex guards is annotated GUARDED_BY in the class that owns both
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define EMBER_ANNOTATE(x) __attribute__((x))
#else
#define EMBER_ANNOTATE(x)
#endif
#define EMBER_GUARDED_BY(m) EMBER_ANNOTATE(guarded_by(m))
#define EMBER_REQUIRES(...) EMBER_ANNOTATE(requires_capability(__VA_ARGS__))
#define EMBER_EXCLUDES(...) EMBER_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace ember {

class EMBER_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() EMBER_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() EMBER_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class EMBER_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) EMBER_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() EMBER_ANNOTATE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits on a Mutex that the caller holds; callers loop over their own condition.
using CondVar = std::condition_variable_any;

}  // namespace ember
