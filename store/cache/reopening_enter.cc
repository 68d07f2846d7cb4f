// Records to index entries: each under its parent, or set aside.
#include "store/cache/reopening.h"

#include <algorithm>
#include <utility>

namespace ember {
namespace {

constexpr size_t kPrefetchAhead = 8;  // records

}  // namespace

void Reopening::enter_batch(const RecordBatch& batch) {
  const RecordHarvest& harvest = entering_->harvest;
  std::vector<BlockId>& entered = entering_->entered;
  uint32_t name = 0;  // of the record before: that of most in a chain
  ScopeId scope = batch.rows.empty() ? kNoScope : scope_of(harvest.name(name));
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (i + kPrefetchAhead < batch.rows.size()) {
      const size_t ahead = i + kPrefetchAhead;
      context_.ledger.index().prefetch(batch.rows[ahead].hash);
      __builtin_prefetch(&entered[entering_->order.places[batch.first + ahead].number]);
    }
    const RecordHarvest::Place& place = entering_->order.places[batch.first + i];
    const RecordHarvest::Row& row = batch.rows[i];
    if (place.begins_run) store_entered();
    if (std::exchange(name, row.scope) != row.scope) scope = scope_of(harvest.name(name));
    const bool here = place.parent != RecordHarvest::kNone;
    const BlockId above = here ? entered[place.parent] : kNoBlock;
    const BlockId block =
        enter(row, batch.tokens(i), scope, above, harvest.name(row.publisher));
    entered[place.number] = block;
    if (block == kNoBlock) set_aside(row);
  }
  store_entered();
}

// From the last on: what follows a block is stored before it, so that of a run the end alone is
// ever a leaf.
void Reopening::store_entered() {
  for (; !unstored_.empty(); unstored_.pop_back()) {
    const Unstored& next = unstored_.back();
    context_.ledger.set_stored(next.block, next.epoch, next.stored_bytes);
  }
}

ScopeId Reopening::scope_of(const std::string& name) const {
  const Result<ScopeId> scope = context_.scopes.add(name);
  return scope.ok() ? *scope : kNoScope;
}

// The parent's entry: kNoBlock for a first block; nothing if it has not come.
// `known`: its number, should it still be its.
std::optional<BlockId> Reopening::parent_of(ScopeId scope, const BlockHash& parent,
                                            uint32_t position, BlockId known) const {
  if (scope == kNoScope) return std::nullopt;
  if (position == 0) {
    if (parent != context_.scopes.hasher(scope).root()) return std::nullopt;
    return kNoBlock;
  }
  const RadixIndex& index = context_.ledger.index();
  const BlockId block = index.names(known, parent) ? known : index.find(parent);
  if (block == kNoBlock || context_.ledger.is_tail(block)) return std::nullopt;
  const ScopeId above = index.scope(block);
  if (above != scope && above != kSharedScope) return std::nullopt;
  if (context_.ledger.entry(block).position + 1 != position) return std::nullopt;
  return block;
}

BlockId Reopening::enter(const RecordHarvest::Row& row, TokenSpan tokens, ScopeId scope,
                         BlockId above, const std::string& publisher_name) {
  const std::optional<BlockId> parent = parent_of(scope, row.parent, row.position, above);
  if (!parent) return kNoBlock;
  BlockLedger& ledger = context_.ledger;
  const auto [block, made] =
      ledger.adopt(scope, *parent, tokens, row.hash, row.numerics_build, row.touch());
  if (!made) {
    meet(block, row);
    return block;
  }
  if (scope == kSharedScope && !publisher_name.empty()) {
    const Result<ScopeId> publisher = context_.scopes.add(publisher_name);
    if (publisher.ok()) ledger.set_publisher(block, *publisher);
  }
  if (row.epoch == 0) {  // a hole: the drive was full once, or its groups were damaged
    ledger.add_hole(block);
    holes_.push_back({row.hash, row.position, 0});
  } else {
    const auto epoch = static_cast<int32_t>(row.epoch & 0x7fffffffu);
    unstored_.push_back({block, epoch, row.stored_bytes});
    if (!walking_) offload_.forget_foreign(row.hash);
  }
  release_tails(row.hash, block);
  return block;
}

// One that was asked for by a prompt, or computed anew, since opening.
void Reopening::meet(BlockId known, const RecordHarvest::Row& row) {
  BlockLedger& ledger = context_.ledger;
  const BlockEntry& entry = ledger.entry(known);
  const bool same = entry.numerics_build == row.numerics_build && !entry.damaged;
  if (same && row.epoch != 0 && !entry.in(Tier::kDisk)) {
    ledger.set_stored(known, static_cast<int32_t>(row.epoch & 0x7fffffffu), row.stored_bytes);
  }
  ledger.recall(known, row.touch());
  release_tails(row.hash, known);
}

// Below a record that cannot be read it is below a hole; else it is what must not be.
void Reopening::set_aside(const RecordHarvest::Row& row) {
  if (unreadable_ == 0) ++unreachable_;
  const ForeignRecord aside{row.hash, row.position, row.stored_bytes};
  offload_.add_foreign({&aside, 1});
}

void Reopening::release_tails(const BlockHash& hash, BlockId block) {
  if (waiting_tails_.empty()) return;
  const auto [first, last] = waiting_tails_.equal_range(hash);
  for (auto it = first; it != last; ++it) enter_tail(block, it->second);
  waiting_tails_.erase(first, last);
}

void Reopening::take_tail(BlockRecord record) {
  RecordProver rules = prover();
  if (!rules.is_ours(record)) {
    context_.tails.add(std::move(record));  // another namespace's: counted, and the first to go
    return;
  }
  const BlockHash hash = record.hash;
  const BlockHash parent = record.parent;
  if (!record.tail || rules.is_damaged(record)) {
    ++unreadable_;
    doomed_tails_.push_back(hash);
    return;
  }
  const std::optional<BlockId> known =
      parent_of(scope_of(record.scope), parent, record.position);
  context_.tails.add(std::move(record));
  if (known) return enter_tail(*known, hash);
  waiting_tails_.emplace(parent, hash);
}

void Reopening::enter_tail(BlockId parent, const BlockHash& hash) {
  const BlockRecord* record = context_.tails.find(hash);
  if (record == nullptr) return;  // it has made room since
  const ScopeId scope = scope_of(record->scope);
  if (!parent_of(scope, record->parent, record->position)) return;
  const BlockId block = context_.ledger
                            .adopt(scope, parent, record->tokens, hash,
                                   record->numerics_build, TouchRecord{})
                            .block;
  if (context_.ledger.entry(block).numerics_build != record->numerics_build) return;
  context_.ledger.set_stored(block, kTailEpoch, record->stored_bytes());
}

// Holes below which nothing is left are of no use. The deepest first.
void Reopening::drop_empty_holes() {
  std::sort(holes_.begin(), holes_.end(),
            [](const auto& a, const auto& b) { return a.position > b.position; });
  for (const ForeignRecord& hole : holes_) {
    if (context_.ledger.forget_empty_hole(hole.hash)) offload_.add_foreign({&hole, 1});
  }
  holes_.clear();
}

}  // namespace ember
