// Scope book: the scopes' names and numbers, and what is counted for each.
//
// Journey    tenants -> [scope_book] -> block_hash, block_ledger
// Owns       a number, a hasher and counters for each scope that was ever used since opening
// Invariant  number 0 is `shared`; a number is given once and stays. What a scope has on disk is
//            the sum of the payloads of its own blocks and tails and of those that it published
// Threads    engine thread only
// Not here   which blocks those are (store/cache/block_ledger.h)
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "prefix_index/block_hash.h"
#include "prefix_index/scope.h"
#include "store/tenants.h"

namespace ember {

struct ScopeCounters {
  uint64_t disk_bytes = 0;
  std::array<uint64_t, kTierCount> restored_tokens{};
  uint64_t committed_blocks = 0;
  uint64_t quota_evicted_blocks = 0;
  uint64_t quota_refused_blocks = 0;
};

class ScopeBook {
 public:
  // More than that at a time is no tenants but a mistake of the caller's.
  static constexpr size_t kMaxScopes = size_t{1} << 16;

  ScopeBook(const HashSecret& secret, const NamespaceHash& name_space, TenantPolicy policy);

  // The scope of this name; kNoScope if nothing was ever stored under it.
  ScopeId find(std::string_view name) const;
  // The same, numbered if new. Errors: kCapacity.
  Result<ScopeId> add(std::string_view name);
  size_t size() const { return scopes_.size(); }

  const std::string& name(ScopeId scope) const { return at(scope).name; }
  const BlockHasher& hasher(ScopeId scope) const { return at(scope).hasher; }
  uint64_t quota_bytes(ScopeId scope) const { return at(scope).quota_bytes; }  // 0: none
  ScopeCounters& counters(ScopeId scope) { return at(scope).counters; }
  const ScopeCounters& counters(ScopeId scope) const { return at(scope).counters; }
  uint64_t quota_of(std::string_view name) const;
  // A hasher for any scope. Threads: any.
  BlockHasher make_hasher(std::string_view name) const {
    return BlockHasher(secret_, name_space_, name);
  }
  const TenantPolicy& policy() const { return policy_; }

 private:
  struct Scope {
    std::string name;
    BlockHasher hasher;
    uint64_t quota_bytes = 0;
    ScopeCounters counters;
  };
  const Scope& at(ScopeId scope) const;
  Scope& at(ScopeId scope);

  HashSecret secret_;
  NamespaceHash name_space_;
  TenantPolicy policy_;
  std::deque<Scope> scopes_;  // by number; addresses stay
  std::map<std::string, ScopeId, std::less<>> by_name_;
};

}  // namespace ember
