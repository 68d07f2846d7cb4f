// Record prover: decides of each stored record whether it may enter the index.
//
// Journey    disk_tier -> [record_prover] -> record_harvest
// Owns       a hasher for each scope that it met
// Invariant  a record that passes is of our namespace and layout, and its hash follows from the
//            secret, its scope, its parent and its token ids
// Threads    any, one at a time: each task has its own
#pragma once

#include <string>
#include <unordered_map>

#include "prefix_index/block_hash.h"
#include "store/cache/scope_book.h"
#include "store/kv_layout.h"
#include "store/record.h"

namespace ember {

class RecordProver {
 public:
  RecordProver(const KvLayout& layout, const ScopeBook& scopes, const NamespaceHash& name_space)
      : layout_(layout), scopes_(scopes), name_space_(name_space) {}

  // Others are counted, and left where they are.
  bool is_ours(const BlockRecord& record) const {
    return record.name_space == name_space_ && !record.scope.empty();
  }
  bool is_damaged(const BlockRecord& record);
  // The hash of a scope's block.
  BlockHash next(const std::string& scope, const BlockHash& parent, TokenSpan tokens);
  uint32_t block_tokens() const { return layout_.block_tokens(); }

 private:
  const KvLayout& layout_;
  const ScopeBook& scopes_;  // of which only make_hasher is used
  NamespaceHash name_space_;
  std::unordered_map<std::string, BlockHasher> hashers_;
};

}  // namespace ember
