// Conversation claims: who may write to a conversation: a talk, or a command that changes it.
//
// Journey    talk, conversation_edits -> [conversation_claims] -> conversations database
// Invariant  a conversation has one writer at a time
// Threads    any
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"

namespace ember {

// Held by the writer; it is free again when this goes.
using ConversationClaim = std::shared_ptr<const void>;

class ConversationClaims : public std::enable_shared_from_this<ConversationClaims> {
 public:
  // Null: somebody has it.
  ConversationClaim claim(const std::string& id) {
    {
      const MutexLock lock(mutex_);
      if (!claimed_.insert(id).second) return nullptr;
    }
    // Its address means nothing.
    return ConversationClaim(this, [self = shared_from_this(), id](const void*) {
      const MutexLock lock(self->mutex_);
      self->claimed_.erase(id);
    });
  }
  bool taken(const std::string& id) {
    const MutexLock lock(mutex_);
    return claimed_.contains(id);
  }

 private:
  Mutex mutex_;
  std::set<std::string> claimed_ EMBER_GUARDED_BY(mutex_);
};

}  // namespace ember
