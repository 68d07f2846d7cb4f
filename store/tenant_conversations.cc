// One owner's view of the conversations' database.
#include "store/tenant_conversations.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace ember {
namespace {

constexpr size_t kIdDigits = 16;

Error unknown(const std::string& id) {
  return {ErrorCode::kInvalidArgument, "there is no conversation " + id};
}

}  // namespace

Result<std::vector<Conversation>> TenantConversations::list() {
  EMBER_ASSIGN(std::vector<Conversation> heads, conversations_.list());
  std::erase_if(heads, [&](const Conversation& head) { return head.scope != scope_; });
  return heads;
}

Result<Conversation> TenantConversations::load(const std::string& id) {
  Result<Conversation> found = conversations_.load(id);
  if (found.ok() && found->scope != scope_) return unknown(id);
  if (found.ok()) return found;
  if (found.error().code == ErrorCode::kInvalidArgument) return unknown(id);
  // Only its owner hears that it is there and damaged.
  EMBER_ASSIGN(const std::vector<Conversation> own, list());
  const bool ours = std::any_of(own.begin(), own.end(),
                                [&](const Conversation& head) { return head.id == id; });
  if (!ours) return unknown(id);
  return Error{found.error().code, "conversation " + id + " cannot be read"};
}

Status TenantConversations::check_owner(const std::string& id) {
  if (checked_ == id) return {};
  EMBER_TRY(load(id));
  checked_ = id;
  return {};
}

Status TenantConversations::put_head(Conversation conversation) {
  const std::string id = conversation.id;
  if (id.size() != kIdDigits || !from_hex(id)) return unknown(id);
  if (checked_ != id) {
    const Result<Conversation> there = conversations_.load(id);
    const bool absent = !there.ok() && there.error().code == ErrorCode::kInvalidArgument;
    if (!absent) EMBER_TRY(check_owner(id));
  }
  conversation.scope = scope_;
  EMBER_TRY(conversations_.put_head(conversation));
  checked_ = id;
  return {};
}

Status TenantConversations::put_turn(const std::string& id, uint32_t index, const Turn& turn) {
  EMBER_TRY(check_owner(id));
  return conversations_.put_turn(id, index, turn);
}

Status TenantConversations::remove(const std::string& id) {
  EMBER_TRY(check_owner(id));
  checked_.clear();
  return conversations_.remove(id);
}

}  // namespace ember
