// Tenants: for whom a request runs, what it may publish, and how much disk a tenant may use.
//
// Journey    service (API key -> tenant) -> [tenants] -> block_cache
// Invariant  a tenant finds its own blocks and whole blocks of `shared`, and learns nothing of any
//            other tenant's; only who may publish writes to `shared`
// Threads    any; values
// Not here   keys and requests (service), the numbers of scopes (store/cache/scope_book.h)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "prefix_index/journey.h"

namespace ember {

inline constexpr std::string_view kSharedScopeName = "shared";
inline constexpr size_t kMaxTenantNameBytes = 128;

// For whom a request runs. The default is the single user's: all blocks are in `shared`.
struct RequestScope {
  std::string tenant;  // empty: no tenant, all in `shared`
  // Full blocks within the first so many tokens are committed to `shared`, where every tenant finds
  // them; what follows is the tenant's alone. They count on the tenant's quota.
  size_t publish_tokens = 0;
  bool may_publish = false;  // the key's privilege, which publish_tokens needs
  // The conversation of which the request is a turn, for the access log only; empty: of none.
  std::string conversation = {};
};

struct TenantPolicy {
  bool required = false;                        // a request without a tenant is refused
  uint64_t quota_bytes = 0;                     // on disk, of each tenant; 0: no quota
  std::map<std::string, uint64_t> quotas = {};  // of tenants that have another one
};

// What a tenant may know: of its own blocks and requests, nothing else. Its own: the private ones
// and those that it published.
struct TenantStats {
  bool store_usable = false;
  std::array<uint64_t, kTierCount> blocks{};
  uint64_t tail_records = 0;
  uint64_t disk_bytes = 0;   // payload
  uint64_t quota_bytes = 0;  // 0: no quota
  // Since opening.
  std::array<uint64_t, kTierCount> restored_tokens{};
  uint64_t committed_blocks = 0;
  uint64_t quota_evicted_blocks = 0;  // gave way to newer ones within the quota
  uint64_t quota_refused_blocks = 0;  // did not fit the quota
};

// 1 to kMaxTenantNameBytes bytes, none of them a control character; not "shared".
// Errors: kInvalidArgument naming the fault.
Status check_tenant_name(std::string_view name);
// Errors: kInvalidArgument: a bad name, none where one is needed, or publishing without the right.
Status check_request_scope(const RequestScope& scope, const TenantPolicy& policy);

}  // namespace ember
