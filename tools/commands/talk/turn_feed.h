// Turn feed: an answer on its way from the engine thread to the thread that prints it.
//
// Journey    chat_session -> [turn_feed] -> talk
// Owns       the pieces that were not printed yet: at most those of one answer
// Invariant  the engine thread never waits here
// Threads    the engine's puts, another takes
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/runtime/chat_session.h"

namespace ember {

class TurnFeed {
 public:
  struct News {
    std::vector<std::pair<TokenId, std::string>> pieces;
    std::optional<double> prefilled;  // the part of the prompt that is computed, if that changed
    std::optional<Result<TurnOutcome>> ended;
  };

  void put_piece(TokenId id, std::string_view text) {
    const MutexLock lock(mutex_);
    news_.pieces.emplace_back(id, text);
    changed_.notify_all();
  }
  void put_prefilled(double part) {
    const MutexLock lock(mutex_);
    news_.prefilled = part;
    changed_.notify_all();
  }
  void put_end(const Result<TurnOutcome>& turn) {
    const MutexLock lock(mutex_);
    news_.ended = turn;
    changed_.notify_all();
  }
  // What came since the last time; waits at most `patience_us` for the first of it.
  News take(int64_t patience_us);

 private:
  Mutex mutex_;
  CondVar changed_;
  News news_ EMBER_GUARDED_BY(mutex_);
};

// Options of a turn whose answer goes to `feed`.
TurnOptions feeding(const std::shared_ptr<TurnFeed>& feed);

}  // namespace ember
