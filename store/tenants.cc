// Who may ask, under which name, for what.
#include "store/tenants.h"

#include <algorithm>

namespace ember {

Status check_tenant_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxTenantNameBytes) {
    return {ErrorCode::kInvalidArgument,
            "a tenant's name has 1 to " + std::to_string(kMaxTenantNameBytes) +
                " bytes, found " + std::to_string(name.size())};
  }
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), control)) {
    return {ErrorCode::kInvalidArgument, "a tenant's name has no control characters"};
  }
  if (name == kSharedScopeName) {
    return {ErrorCode::kInvalidArgument, "\"shared\" is no tenant's name: it is the scope of all"};
  }
  return {};
}

Status check_request_scope(const RequestScope& scope, const TenantPolicy& policy) {
  if (scope.tenant.empty()) {
    if (!policy.required) return {};
    return {ErrorCode::kInvalidArgument, "a request names its tenant here, found none"};
  }
  EMBER_TRY(check_tenant_name(scope.tenant));
  if (scope.publish_tokens > 0 && !scope.may_publish) {
    return {ErrorCode::kInvalidArgument, "publishing needs a key with the right to publish"};
  }
  return {};
}

}  // namespace ember
