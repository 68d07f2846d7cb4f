// Names to numbers, and back.
#include "store/cache/scope_book.h"

#include <utility>

#include "base/check.h"

namespace ember {

ScopeBook::ScopeBook(const HashSecret& secret, const NamespaceHash& name_space,
                     TenantPolicy policy)
    : secret_(secret), name_space_(name_space), policy_(std::move(policy)) {
  EMBER_CHECK(add(kSharedScopeName).ok(), "the first scope is `shared`");
}

ScopeId ScopeBook::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoScope : found->second;
}

Result<ScopeId> ScopeBook::add(std::string_view name) {
  if (const ScopeId known = find(name); known != kNoScope) return known;
  if (scopes_.size() == kMaxScopes) {
    return Error{ErrorCode::kCapacity,
                 "more than " + std::to_string(kMaxScopes) + " tenants since opening"};
  }
  const ScopeId added{static_cast<uint32_t>(scopes_.size())};
  scopes_.push_back({std::string(name), make_hasher(name), quota_of(name), {}});
  by_name_.emplace(name, added);
  return added;
}

uint64_t ScopeBook::quota_of(std::string_view name) const {
  if (name == kSharedScopeName) return 0;
  const auto own = policy_.quotas.find(std::string(name));
  return own == policy_.quotas.end() ? policy_.quota_bytes : own->second;
}

ScopeBook::Scope& ScopeBook::at(ScopeId scope) {
  return const_cast<Scope&>(std::as_const(*this).at(scope));
}

const ScopeBook::Scope& ScopeBook::at(ScopeId scope) const {
  EMBER_CHECK(static_cast<size_t>(scope) < scopes_.size(), "no such scope");
  return scopes_[static_cast<size_t>(scope)];
}

}  // namespace ember
