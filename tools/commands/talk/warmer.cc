// Asking the engine for one prompt at a time.
#include "tools/commands/talk/warmer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace ember {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr int64_t kLookUpPatienceUs = 60'000'000;  // for the records of a store just opened
constexpr int64_t kReadPatienceUs = 5'000'000;     // without a block that comes

uint64_t on_disk(const BlockCache::Match& match) {
  return match.tokens_by_tier[static_cast<size_t>(Tier::kDisk)];
}

// Filled on the engine thread.
struct UnderWay {
  Mutex mutex;
  CondVar changed;
  double done EMBER_GUARDED_BY(mutex) = 0;
  std::optional<Status> ended EMBER_GUARDED_BY(mutex);
};

Request background_request(const WarmPrompt& prompt, const std::shared_ptr<UnderWay>& under_way) {
  Request request;
  request.prompt = prompt.tokens;
  request.max_tokens = 1;
  request.scope = prompt.scope;
  request.background = true;
  request.on_prefill = [under_way](size_t computed, size_t all) {
    const MutexLock lock(under_way->mutex);
    under_way->done = static_cast<double>(computed) / static_cast<double>(all);
  };
  request.on_done = [under_way](const Outcome& outcome) {
    const MutexLock lock(under_way->mutex);
    under_way->ended = outcome.status;
    under_way->changed.notify_all();
  };
  return request;
}

}  // namespace

// A store that was just opened is asked until it has told what it knows.
Result<Foresight> Warmer::look(const WarmPrompt& prompt) {
  const int64_t deadline_us = system_clock().now_us() + kLookUpPatienceUs;
  while (true) {
    Foresight foresight;
    EMBER_TRY(holding_.call([&] {
      foresight = holding_.engine().scheduler().foresee(prompt.tokens, prompt.scope);
    }));
    if (!foresight.match.looking_up || system_clock().now_us() >= deadline_us) return foresight;
    if (io_.stopped()) return Error{ErrorCode::kCancelled, "stopped"};
    std::this_thread::sleep_for(kLook);
  }
}

Result<Warmed> Warmer::foresee(const WarmPrompt& prompt) {
  EMBER_ASSIGN(const Foresight foresight, look(prompt));
  Warmed warmed;
  warmed.prompt_tokens = prompt.tokens.size();
  warmed.hit_tokens = foresight.match.tokens;
  // The last token of a prompt is never matched; a block that ends with it is there all the same.
  const bool known = warmed.hit_tokens + 1 >= warmed.prompt_tokens;
  if (known) return warmed;
  if (prompt.stored) {
    return Error{ErrorCode::kInvalidArgument, "the store has no longer all of it"};
  }
  const uint64_t context = holding_.engine().context_tokens();  // never changes
  if (warmed.prompt_tokens >= context) {
    return Error{ErrorCode::kInvalidArgument,
                 "the prompt has " + std::to_string(warmed.prompt_tokens) +
                     " tokens; the context holds " + std::to_string(context) +
                     ", answer included"};
  }
  warmed.state = WarmState::kWouldCompute;
  warmed.computed_tokens = warmed.prompt_tokens - warmed.hit_tokens;
  warmed.predicted_us =
      static_cast<int64_t>(foresight.plan.restore_us + foresight.plan.compute_us);
  return warmed;
}

Result<uint64_t> Warmer::tokens_since(const Warmed& before, const WarmPrompt& prompt) {
  EMBER_ASSIGN(const Foresight now, look(prompt));
  return now.match.tokens - std::min<uint64_t>(now.match.tokens, before.hit_tokens);
}

Result<Warmed> Warmer::warm(const std::string& name, const WarmPrompt& prompt) {
  const int64_t began_us = system_clock().now_us();
  EMBER_ASSIGN(Warmed warmed, foresee(prompt));
  if (warmed.state == WarmState::kWouldCompute) {
    const Status computed = compute(name, prompt);
    warmed.state = WarmState::kComputed;
    if (!computed.ok()) {
      if (!io_.stopped()) return computed.error();
      EMBER_ASSIGN(warmed.computed_tokens, tokens_since(warmed, prompt));
      warmed.state = WarmState::kCut;
    }
  } else if (to_ram_) {
    EMBER_ASSIGN(const Foresight foresight, look(prompt));
    EMBER_TRY(read_into_ram(name, prompt, on_disk(foresight.match), warmed.ram_tokens));
  }
  progress_.clear();
  warmed.took_us = system_clock().now_us() - began_us;
  return warmed;
}

// Each time that it gives way it has come further.
Status Warmer::compute(const std::string& name, const WarmPrompt& prompt) {
  while (true) {
    const Status ended = compute_once(name, prompt);
    if (ended.ok() || ended.error().code != ErrorCode::kBusy || io_.stopped()) return ended;
    std::this_thread::sleep_for(kLook);
  }
}

Status Warmer::compute_once(const std::string& name, const WarmPrompt& prompt) {
  const auto under_way = std::make_shared<UnderWay>();
  Result<uint64_t> submitted = uint64_t{0};
  EMBER_TRY(holding_.call([&] {
    submitted = holding_.engine().submit(background_request(prompt, under_way));
  }));
  if (!submitted.ok()) return submitted.error();
  while (true) {
    double done = 0;
    {
      const MutexLock lock(under_way->mutex);
      if (!under_way->ended) under_way->changed.wait_for(under_way->mutex, kLook);
      if (under_way->ended) return *under_way->ended;
      done = under_way->done;
    }
    progress_.show(name, done);
    if (!io_.stopped()) continue;
    EMBER_TRY(holding_.call([&] { holding_.engine().scheduler().cancel(*submitted); }));
    return {ErrorCode::kCancelled, "stopped"};
  }
}

// As far as half of the RAM for blocks goes; what is read stays there like all that was used.
Status Warmer::read_into_ram(const std::string& name, const WarmPrompt& prompt,
                             uint64_t on_disk_now, uint64_t& brought) {
  if (on_disk_now == 0) return {};
  std::unique_ptr<Prefetch> prefetch;
  EMBER_TRY(holding_.call([&] {
    prefetch = holding_.engine().cache().prefetch(prompt.tokens, prompt.tokens.size(),
                                                  prompt.scope);
  }));
  Status looked;
  uint64_t left = on_disk_now;
  int64_t deadline_us = system_clock().now_us() + kReadPatienceUs;
  while (left > 0 && !io_.stopped() && system_clock().now_us() < deadline_us) {
    std::this_thread::sleep_for(kLook);
    const Result<Foresight> now = look(prompt);
    looked = now.ok() ? Status() : now.error();
    if (!looked.ok()) break;
    const uint64_t still = on_disk(now->match);
    if (still < left) deadline_us = system_clock().now_us() + kReadPatienceUs;
    left = still;
    progress_.show(name, 1 - static_cast<double>(left) / static_cast<double>(on_disk_now));
  }
  // On the engine's thread, as long as that runs.
  static_cast<void>(holding_.call([&prefetch] { prefetch.reset(); }));
  brought = on_disk_now - left;
  if (io_.stopped()) return {ErrorCode::kCancelled, "stopped"};
  return looked;
}

Status Warmer::make_durable() {
  return holding_.wait_for([this] { return holding_.engine().cache().sync(); },
                           [this] { return io_.stopped(); });
}

}  // namespace ember
