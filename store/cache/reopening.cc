// Records to index entries, parents first.
#include "store/cache/reopening.h"

#include <algorithm>
#include <utility>

#include "store/cache/block_coder.h"

namespace ember {
namespace {

using Listed = std::pair<BlockRecord, TouchRecord>;

class Rebuild {
 public:
  Rebuild(CacheContext& context, const BlockHasher& hasher)
      : context_(context), hasher_(hasher) {}

  void blocks(DiskTier::Listing listing) {
    reopened_.unreadable += listing.unreadable;
    std::sort(listing.records.begin(), listing.records.end(),
              [](const Listed& a, const Listed& b) { return a.first.position < b.first.position; });
    for (const Listed& listed : listing.records) add_block(listed.first, listed.second);
    recall_uses();
    std::sort(reopened_.foreign.begin(), reopened_.foreign.end(),
              [](const ForeignRecord& a, const ForeignRecord& b) {
                return a.position < b.position;
              });
  }

  void tails(Conversations::TailListing listing) {
    reopened_.unreadable += listing.unreadable;
    for (BlockRecord& record : listing.records) add_tail(std::move(record));
  }

  Reopened take() { return std::move(reopened_); }

 private:
  bool is_ours(const BlockRecord& record) const {
    return record.name_space == context_.name_space && record.scope == context_.scope;
  }

  // The parent's entry: kNoBlock for a first block; nothing if it is missing.
  std::optional<BlockId> parent_of(const BlockRecord& record) const {
    if (record.position == 0) {
      if (record.parent != hasher_.root()) return std::nullopt;
      return kNoBlock;
    }
    const BlockId parent = context_.ledger.index().find(record.parent);
    if (parent == kNoBlock || context_.ledger.is_tail(parent)) return std::nullopt;
    if (context_.ledger.entry(parent).position + 1 != record.position) return std::nullopt;
    return parent;
  }

  bool is_damaged(const BlockRecord& record) const {
    return !check_record_shape(record, context_.layout).ok() ||
           hasher_.next(record.parent, record.tokens) != record.hash;
  }

  void set_aside(const BlockRecord& record) {
    reopened_.foreign.push_back({record.hash, record.position, record.stored_bytes()});
  }

  void add_block(const BlockRecord& record, const TouchRecord& touch) {
    if (!is_ours(record)) return set_aside(record);
    if (record.tail || is_damaged(record)) {
      ++reopened_.unreadable;
      return set_aside(record);
    }
    const std::optional<BlockId> parent = parent_of(record);
    if (!parent) {
      ++reopened_.unreachable;
      return set_aside(record);
    }
    const BlockId block =
        context_.ledger.insert(*parent, record.tokens, record.hash, record.numerics_build);
    context_.ledger.set_stored(block, static_cast<int32_t>(record.epoch & 0x7fffffffu),
                               record.stored_bytes());
    if (record.numerics_build != context_.numerics_build) context_.ledger.expect_foreign_builds();
    uses_.push_back({touch, block});
  }

  // The oldest first; of one time the deepest first, as in use.
  void recall_uses() {
    std::stable_sort(uses_.begin(), uses_.end(), [&](const Use& a, const Use& b) {
      if (a.touch.last_use_unix_us != b.touch.last_use_unix_us) {
        return a.touch.last_use_unix_us < b.touch.last_use_unix_us;
      }
      return context_.ledger.entry(a.block).position > context_.ledger.entry(b.block).position;
    });
    for (const Use& use : uses_) context_.ledger.recall(use.block, use.touch);
  }

  void add_tail(BlockRecord record) {
    if (!is_ours(record)) {
      context_.tails.add(std::move(record));  // another namespace's: counted, and the first to go
      return;
    }
    if (!record.tail || is_damaged(record)) {
      ++reopened_.unreadable;
      reopened_.doomed_tails.push_back(record.hash);
      return;
    }
    const std::optional<BlockId> parent = parent_of(record);
    if (!parent) {
      reopened_.doomed_tails.push_back(record.hash);
      return;
    }
    const BlockId block =
        context_.ledger.insert(*parent, record.tokens, record.hash, record.numerics_build);
    context_.ledger.set_stored(block, kTailEpoch, record.stored_bytes());
    context_.tails.add(std::move(record));
  }

  struct Use {
    TouchRecord touch;
    BlockId block;
  };

  CacheContext& context_;
  const BlockHasher& hasher_;
  Reopened reopened_;
  std::vector<Use> uses_;
};

}  // namespace

Result<Reopened> reopen(CacheContext& context, const BlockHasher& hasher) {
  // Both lists before the first entry: the index never names what the cache then does without.
  EMBER_ASSIGN(DiskTier::Listing blocks, context.disk->list());
  Conversations::TailListing tails;
  if (context.conversations != nullptr) {
    EMBER_ASSIGN(tails, context.conversations->list_tails());
  }
  Rebuild rebuild(context, hasher);
  rebuild.blocks(std::move(blocks));
  rebuild.tails(std::move(tails));
  return rebuild.take();
}

}  // namespace ember
