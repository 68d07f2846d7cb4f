// Tenant's conversations: those of one owner, as if the database held no others.
//
// Journey    service (API key -> tenant) -> [tenant_conversations] -> conversations
// Invariant  another owner's conversation is answered exactly as one that does not exist, and is
//            never written over nor removed
// Threads    as Conversations
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/conversations.h"
#include "store/tenants.h"

namespace ember {

class TenantConversations {
 public:
  // `conversations` outlives this. An empty tenant is the single user, whose scope is `shared`.
  TenantConversations(Conversations& conversations, const std::string& tenant)
      : conversations_(conversations), scope_(tenant.empty() ? kSharedScopeName : tenant) {}

  // As Conversations has them. Errors: kInvalidArgument when there is no such conversation of this
  // owner (put_head: when the id is taken), kCorruption without details, kIo, kCapacity.
  Status put_head(Conversation conversation);
  Status put_turn(const std::string& id, uint32_t index, const Turn& turn);
  Result<Conversation> load(const std::string& id);
  Result<std::vector<Conversation>> list();
  Status remove(const std::string& id);

 private:
  Status check_owner(const std::string& id);

  Conversations& conversations_;
  const std::string scope_;  // of a conversation: its owner
  std::string checked_;  // the last id that was found to be this owner's
};

}  // namespace ember
