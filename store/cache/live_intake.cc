// Taking into a running cache what others have computed: the store first, by a turn of the write
// lane, then the index.
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/cache/live_edits_impl.h"
#include "store/record_intake.h"

namespace ember {
namespace {

// Writes what is new, in order; what is there already is entered as it is there.
Status write_batch(DiskTier& disk, Conversations* conversations, IncomingBatch& batch) {
  for (; batch.written < batch.blocks.size(); ++batch.written) {
    IncomingBlock& block = batch.blocks[batch.written];
    if (block.known) continue;
    if (block.record.tail) {
      if (conversations == nullptr) return {ErrorCode::kIo, "the store has no database of tails"};
      EMBER_TRY(conversations->put_tail(block.record, block.payloads, true));
      continue;
    }
    EMBER_ASSIGN(std::optional<BlockRecord> here, disk.read_record(block.record.hash));
    if (here && here->epoch != 0) {
      block.known = true;
      block.record = std::move(*here);
      continue;
    }
    EMBER_TRY(disk.put(block.record, block.payloads));
  }
  return {};
}

}  // namespace

bool LiveEditsImpl::is_ours(const BlockRecord& record) const {
  return record.name_space == context_.name_space;
}

// What the index knows is not written again; a child waits for its parent to be on disk.
Status LiveEditsImpl::look_at(IncomingBatch& batch, std::vector<BlockId>& held) {
  const BlockLedger& ledger = context_.ledger;
  std::unordered_set<BlockHash> coming;
  for (IncomingBlock& block : batch.blocks) {
    BlockRecord& record = block.record;
    if (!is_ours(record)) continue;
    const BlockId known = ledger.index().find(record.hash);
    const bool hole = known != kNoBlock && ledger.entry(known).damaged;
    const bool there = known != kNoBlock && !hole && ledger.entry(known).anywhere();
    if (there && !record.tail && !ledger.entry(known).in(Tier::kDisk)) {
      return {ErrorCode::kBusy, "a block of it is still on its way to the disk"};
    }
    block.known = there && ledger.entry(known).in(Tier::kDisk);
    if (there && record.tail) block.known = true;
    const bool first = record.position == 0;
    const BlockId parent = first ? kNoBlock : ledger.index().find(record.parent);
    const bool stored = parent != kNoBlock && ledger.entry(parent).in(Tier::kDisk);
    if (!first && !coming.contains(record.parent) && !stored) {
      return {ErrorCode::kBusy, "the block before one of it is not on the disk"};
    }
    coming.insert(record.hash);
    for (const BlockId one : {known, parent}) {
      if (one != kNoBlock) held.push_back(one);
    }
  }
  return {};
}

Ticket LiveEditsImpl::take_in(std::shared_ptr<IncomingBatch> batch) {
  Status looked = check_writable();
  std::vector<BlockId> held;
  if (looked.ok()) looked = look_at(*batch, held);
  if (!looked.ok()) {
    const Ticket refused = context_.device.external_ticket();
    context_.device.post(refused, looked);
    return refused;
  }
  for (const BlockId block : held) context_.ledger.hold(block);
  DiskTier* disk = context_.disk;
  Conversations* conversations = context_.conversations;
  return run([batch, disk, conversations] { return write_batch(*disk, conversations, *batch); },
             [this, batch, held = std::move(held)](const Status&) {
               while (batch->entered < batch->written) enter(batch->blocks[batch->entered++]);
               for (const BlockId block : held) context_.ledger.let_go(block);
             });
}

// As if a request had committed it now, but for its bytes, which are on disk already.
void LiveEditsImpl::enter(IncomingBlock& incoming) {
  const BlockRecord& record = incoming.record;
  BlockLedger& ledger = context_.ledger;
  const Result<ScopeId> scope = context_.scopes.add(record.scope);
  const bool first = record.position == 0;
  const BlockId parent = first ? kNoBlock : ledger.index().find(record.parent);
  if (!is_ours(record) || !scope.ok() || (!first && parent == kNoBlock)) {
    return enter_foreign(incoming);
  }
  const BlockId block =
      ledger.insert(*scope, parent, record.tokens, record.hash, record.numerics_build);
  if (ledger.entry(block).in(Tier::kDisk) && !ledger.entry(block).damaged) return;
  if (ledger.entry(block).damaged) ledger.reset(block, record.numerics_build);
  ledger.use({block}, false);
  if (record.tail) return offload_.tail_stored(block, record);
  ledger.ranks().extend(parent, block);
  offload_.block_stored(block, record);
}

// Another namespace's, or below what has gone meanwhile: counted, and the first to go.
void LiveEditsImpl::enter_foreign(const IncomingBlock& incoming) {
  const BlockRecord& record = incoming.record;
  if (incoming.known) return;
  if (record.tail) return context_.tails.add(record);
  const ForeignRecord foreign{record.hash, record.position, record.stored_bytes()};
  offload_.add_foreign({&foreign, 1});
}

}  // namespace ember
