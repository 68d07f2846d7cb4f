// Turn feed: taking with a bounded wait, and the callbacks that fill it.
#include "tools/commands/talk/turn_feed.h"

#include <chrono>

namespace ember {

TurnFeed::News TurnFeed::take(int64_t patience_us) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(patience_us);
  const MutexLock lock(mutex_);
  while (news_.pieces.empty() && !news_.prefilled && !news_.ended) {
    if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) break;
  }
  return std::exchange(news_, News());
}

TurnOptions feeding(const std::shared_ptr<TurnFeed>& feed) {
  TurnOptions options;
  options.on_text = [feed](TokenId id, std::string_view text) { feed->put_piece(id, text); };
  options.on_prefill = [feed](size_t computed, size_t prompt) {
    feed->put_prefilled(static_cast<double>(computed) / static_cast<double>(prompt));
  };
  return options;
}

}  // namespace ember
