// Tail ledger: the tail records that the conversations' database holds, and which may go.
//
// Journey    commit_tail -> [tail_ledger] -> conversations; restore reads the records back
// Owns       the record (not the payload) of each stored tail, in the order of writing
// Invariant  the bytes of all tails together are known; the oldest go first
// Threads    engine thread only; pure
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "prefix_index/block_hash.h"
#include "prefix_index/token.h"
#include "store/record.h"

namespace ember {

class TailLedger {
 public:
  void add(BlockRecord record);
  void erase(const BlockHash& hash);
  const BlockRecord* find(const BlockHash& hash) const;
  // The one written first; nothing if there is none.
  std::optional<BlockHash> oldest() const;
  // The scope's tails after `parent` whose tokens a stored, longer run of tokens begins with.
  std::vector<BlockHash> superseded_by(const std::string& scope, const BlockHash& parent,
                                       TokenSpan tokens) const;

  size_t size() const { return tails_.size(); }
  uint64_t bytes() const { return bytes_; }  // payloads and token ids

 private:
  struct Tail {
    BlockRecord record;
    uint64_t order = 0;
  };
  static uint64_t bytes_of(const BlockRecord& record);

  std::unordered_map<BlockHash, Tail> tails_;
  std::unordered_multimap<BlockHash, BlockHash> by_parent_;
  std::map<uint64_t, BlockHash> by_order_;
  uint64_t next_order_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace ember
