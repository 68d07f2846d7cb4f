// Shape, and the hash anew.
#include "store/cache/record_prover.h"

#include "store/cache/block_coder.h"

namespace ember {

bool RecordProver::is_damaged(const BlockRecord& record) {
  return !check_record_shape(record, layout_).ok() ||
         next(record.scope, record.parent, record.tokens) != record.hash;
}

BlockHash RecordProver::next(const std::string& scope, const BlockHash& parent,
                             TokenSpan tokens) {
  auto hasher = hashers_.find(scope);
  if (hasher == hashers_.end()) {
    if (hashers_.size() == ScopeBook::kMaxScopes) hashers_.clear();
    hasher = hashers_.emplace(scope, scopes_.make_hasher(scope)).first;
  }
  return hasher->second.next(parent, tokens);
}

}  // namespace ember
