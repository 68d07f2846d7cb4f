// Mailbox: a bounded queue, and one external ticket that wakes the engine thread for it.
#include "engine/runtime/mailbox.h"

#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace ember {

// Shared with the scheduler, which may hold the last watch when the mailbox is gone.
struct Mailbox::State : std::enable_shared_from_this<Mailbox::State> {
  enum class Stage : uint8_t { kWaiting, kRunning, kDone, kDropped };
  struct Letter {
    std::function<void()> work;
    Stage stage = Stage::kWaiting;
  };

  State(Device& its_device, Scheduler& its_scheduler)
      : device(its_device), scheduler(its_scheduler) {}

  void arm() {
    const Ticket next = device.external_ticket();
    scheduler.watch(next, [self = shared_from_this()](const Status&) { self->run(); });
    const MutexLock lock(mutex);
    wake = next;
    posted = false;
    if (!letters.empty()) ring();
  }

  // With the mutex held.
  void ring() EMBER_REQUIRES(mutex) {
    if (std::exchange(posted, true)) return;
    device.post(wake, {});
  }

  // Those that were there when it began: what they bring about comes with the next tick.
  void run() {
    size_t left = kMostLetters;
    while (left-- > 0) {
      std::shared_ptr<Letter> letter;
      {
        const MutexLock lock(mutex);
        if (letters.empty()) break;
        letter = std::move(letters.front());
        letters.pop_front();
        letter->stage = Stage::kRunning;
      }
      letter->work();
      const MutexLock lock(mutex);
      letter->stage = Stage::kDone;
      changed.notify_all();
    }
    {
      const MutexLock lock(mutex);
      if (closed) return;
    }
    arm();
  }

  Result<std::shared_ptr<Letter>> put(std::function<void()> work) {
    const MutexLock lock(mutex);
    if (closed) return ending();
    if (letters.size() >= kMostLetters) {
      return Error{ErrorCode::kBusy, "the process that holds the store has " +
                                         std::to_string(letters.size()) + " questions to answer"};
    }
    letters.push_back(std::make_shared<Letter>(Letter{std::move(work), Stage::kWaiting}));
    ring();
    return letters.back();
  }

  static Error ending() {
    return {ErrorCode::kCancelled, "the process that holds the store is ending"};
  }

  Device& device;
  Scheduler& scheduler;
  const std::thread::id engine_thread = std::this_thread::get_id();
  Mutex mutex;
  CondVar changed;
  std::deque<std::shared_ptr<Letter>> letters EMBER_GUARDED_BY(mutex);
  Ticket wake EMBER_GUARDED_BY(mutex);
  bool posted EMBER_GUARDED_BY(mutex) = false;
  bool closed EMBER_GUARDED_BY(mutex) = false;
};

Mailbox::Mailbox(Device& device, Scheduler& scheduler)
    : state_(std::make_shared<State>(device, scheduler)) {
  state_->arm();
}

bool Mailbox::post(std::function<void()> work) { return state_->put(std::move(work)).ok(); }

Status Mailbox::call(const std::function<void()>& work, int64_t patience_us) {
  EMBER_CHECK(std::this_thread::get_id() != state_->engine_thread,
              "the engine thread does not wait for itself");
  EMBER_ASSIGN(const std::shared_ptr<State::Letter> letter, state_->put(work));
  const int64_t deadline_us = system_clock().now_us() + patience_us;
  const MutexLock lock(state_->mutex);
  while (letter->stage == State::Stage::kWaiting) {
    const int64_t left_us = deadline_us - system_clock().now_us();
    if (left_us <= 0) {
      std::erase(state_->letters, letter);
      return {ErrorCode::kBusy, "the process that holds the store did not come to it within " +
                                    std::to_string(patience_us / 1'000'000) +
                                    " s: its engine or its drive is too slow"};
    }
    state_->changed.wait_for(state_->mutex, std::chrono::microseconds(left_us));
  }
  while (letter->stage == State::Stage::kRunning) state_->changed.wait(state_->mutex);
  return letter->stage == State::Stage::kDone ? Status() : State::ending();
}

void Mailbox::close() {
  const MutexLock lock(state_->mutex);
  state_->closed = true;
  for (const auto& letter : state_->letters) letter->stage = State::Stage::kDropped;
  state_->letters.clear();
  state_->changed.notify_all();
}

}  // namespace ember
