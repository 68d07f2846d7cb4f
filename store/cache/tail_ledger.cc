// The tails on disk, by hash, by parent and by age.
#include "store/cache/tail_ledger.h"

#include <algorithm>

namespace ember {

uint64_t TailLedger::bytes_of(const BlockRecord& record) {
  return record.stored_bytes() + record.tokens.size() * sizeof(TokenId);
}

void TailLedger::add(BlockRecord record) {
  erase(record.hash);
  const BlockHash hash = record.hash;
  bytes_ += bytes_of(record);
  by_parent_.emplace(record.parent, hash);
  by_order_.emplace(next_order_, hash);
  tails_.emplace(hash, Tail{std::move(record), next_order_++});
}

void TailLedger::erase(const BlockHash& hash) {
  const auto found = tails_.find(hash);
  if (found == tails_.end()) return;
  bytes_ -= bytes_of(found->second.record);
  by_order_.erase(found->second.order);
  const auto [first, last] = by_parent_.equal_range(found->second.record.parent);
  for (auto it = first; it != last; ++it) {
    if (it->second != hash) continue;
    by_parent_.erase(it);
    break;
  }
  tails_.erase(found);
}

const BlockRecord* TailLedger::find(const BlockHash& hash) const {
  const auto found = tails_.find(hash);
  return found == tails_.end() ? nullptr : &found->second.record;
}

std::optional<BlockHash> TailLedger::oldest() const {
  if (by_order_.empty()) return std::nullopt;
  return by_order_.begin()->second;
}

std::vector<BlockHash> TailLedger::superseded_by(const std::string& scope, const BlockHash& parent,
                                                 TokenSpan tokens) const {
  std::vector<BlockHash> shorter;
  const auto [first, last] = by_parent_.equal_range(parent);
  for (auto it = first; it != last; ++it) {
    const BlockRecord& record = tails_.at(it->second).record;
    if (record.scope != scope) continue;  // the parent may be shared by many
    const std::vector<TokenId>& tail = record.tokens;
    if (tail.size() < tokens.size() && std::equal(tail.begin(), tail.end(), tokens.begin())) {
      shorter.push_back(it->second);
    }
  }
  return shorter;
}

}  // namespace ember
