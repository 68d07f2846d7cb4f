// Ranks from duels, hints, pins and holes.
#include "store/cache/eviction_ranks.h"

#include <algorithm>
#include <utility>

namespace ember {
namespace {

// Of the blocks of yesterday: some milliseconds' worth.
constexpr size_t kRecalledAtOnce = 1024;
constexpr std::ptrdiff_t kPrefetchAhead = 8;

}  // namespace

EvictionRanks::EvictionRanks(RadixIndex& index, uint32_t block_tokens, const Options& options)
    : index_(index),
      block_tokens_(block_tokens),
      numerics_build_(options.numerics_build),
      duels_{Duel(options.policy, options.device_slots), Duel(options.policy, options.host_slots),
             Duel(options.policy, 0)} {
  for (Tier tier : kTiers) {
    index_.evictable(tier).set_rank_source([this, tier](BlockId b) { return rank(tier, b); });
  }
}

EvictionRank EvictionRanks::rank(Tier tier, BlockId block) const {
  if (holes_ > 0 && below_hole(block)) return EvictionRank::kBelowHole;
  const BlockEntry& entry = index_.entry(block);
  if (entry.numerics_build != numerics_build_) return EvictionRank::kForeign;
  const BlockId ranked = is_tail(block) && entry.parent != kNoBlock ? entry.parent : block;
  const PinTable::Kind pin = std::max(pins_.kind(block), pins_.kind(ranked));
  if (pin == PinTable::Kind::kPinned) return EvictionRank::kPinned;
  if (pin == PinTable::Kind::kExpected) return EvictionRank::kExpected;
  if (done(block) || done(ranked)) return EvictionRank::kDone;
  return duel(tier).holds(shadow_id(index_.entry(ranked).hash)) ? EvictionRank::kHeld
                                                                : EvictionRank::kUnheld;
}

bool EvictionRanks::below_hole(BlockId block) const {
  for (; block != kNoBlock; block = index_.entry(block).parent) {
    if (index_.entry(block).damaged) return true;
  }
  return false;
}

void EvictionRanks::rerank(Tier tier, BlockId block) {
  LeafLru& leaves = index_.evictable(tier);
  leaves.rerank(block);
  if (tails_.empty()) return;
  const auto [first, last] = tails_.equal_range(block);
  for (auto tail = first; tail != last; ++tail) leaves.rerank(tail->second);
}

void EvictionRanks::rerank(BlockId block) {
  for (Tier tier : kTiers) rerank(tier, block);
}

void EvictionRanks::apply(Tier tier, const Duel::Change& change) {
  if (change.leader_changed) {
    index_.evictable(tier).rerank_all();
    return;
  }
  for (ShadowId id : change.ids) {
    const BlockId block = index_.find_short(id);
    if (block != kNoBlock) rerank(tier, block);
  }
}

void EvictionRanks::request(std::span<const ShadowId> chain) {
  for (Tier tier : kTiers) apply(tier, duels_[static_cast<size_t>(tier)].request(chain));
}

void EvictionRanks::extend(BlockId parent, BlockId block) {
  const ShadowId id = shadow_id(index_.entry(block).hash);
  if (parent == kNoBlock) return request(std::span(&id, 1));
  const ShadowId before = shadow_id(index_.entry(parent).hash);
  for (Tier tier : kTiers) apply(tier, duels_[static_cast<size_t>(tier)].extend(before, id));
}

void EvictionRanks::set_disk_capacity(size_t blocks) {
  if (blocks == disk_duel().capacity()) return;
  apply(Tier::kDisk, disk_duel().set_capacity(blocks));
}

void EvictionRanks::sort_by_use(std::vector<Remembered>& blocks) {
  std::sort(blocks.begin(), blocks.end(),
            [](const Remembered& a, const Remembered& b) { return a.last_use < b.last_use; });
}

void EvictionRanks::begin_recall(std::vector<Remembered> by_use, std::vector<BlockId> blocks) {
  remembered_ = std::move(by_use);
  remembered_as_ = std::move(blocks);
  recalling_ = true;
  recall_some(kRecalledAtOnce);
}

void EvictionRanks::recall_some(size_t most) {
  if (!recalling_) return;
  for (; most > 0 && !remembered_.empty(); --most) {
    if (expects_marks_ && !newer_left()) return;
    const Remembered next = remembered_.back();
    remembered_.pop_back();
    if (std::ssize(remembered_) >= kPrefetchAhead) {
      disk_duel().prefetch((remembered_.end() - kPrefetchAhead)->block);
    }
    disk_duel().recall(next.block, next.had_hits);
    // Should it be the number of another block by now, that one is ranked once more in vain.
    rerank(Tier::kDisk, remembered_as_[next.number]);
  }
}

std::optional<EvictionRanks::Told> EvictionRanks::take_told() {
  if (!recalling_ || !remembered_.empty() || remembered_.capacity() == 0) return std::nullopt;
  return Told{std::exchange(remembered_, {}), std::exchange(remembered_as_, {})};
}

void EvictionRanks::expect_marks(int64_t written_unix_us) {
  expects_marks_ = true;
  marks_written_at_ = static_cast<uint64_t>(std::max<int64_t>(written_unix_us, 0));
}

void EvictionRanks::recall_marks(std::span<const ShadowMark> marks) {
  for (const ShadowMark& mark : marks) {
    disk_duel().recall(mark);
    const BlockId block = index_.find_short(mark.id);
    if (block != kNoBlock) rerank(Tier::kDisk, block);
  }
}

void EvictionRanks::recall_scores(const Duel::Scores& scores, EvictionPolicy leader) {
  disk_duel().recall_scores(scores, leader);
  index_.evictable(Tier::kDisk).rerank_all();
}

void EvictionRanks::mark_done(BlockId block, bool done) {
  const auto id = static_cast<size_t>(block);
  if (id >= done_.size()) done_.resize(id + 1, 0);
  done_[id] = done ? 1 : 0;
  rerank(block);
}

void EvictionRanks::set_done(BlockId block) { mark_done(block, true); }

void EvictionRanks::set_done(std::span<const BlockId> chain) {
  for (auto block = chain.rbegin(); block != chain.rend(); ++block) {
    if (index_.entry(*block).children > 1) return;  // shared with others from here on
    mark_done(*block, true);
  }
}

void EvictionRanks::used(BlockId block) {
  if (done(block)) mark_done(block, false);
}

bool EvictionRanks::pin(std::span<const BlockId> blocks, PinTable::Kind kind, int64_t until_us,
                        size_t capacity_blocks) {
  size_t more = 0;
  for (BlockId block : blocks) more += pins_.kind(block) == PinTable::Kind::kNone ? 1u : 0u;
  if (pins_.size() + more > capacity_blocks / kPinShare) return false;
  for (BlockId block : blocks) {
    pins_.set(block, kind, until_us);
    rerank(block);
  }
  return true;
}

void EvictionRanks::unpin(std::span<const BlockId> blocks) {
  for (BlockId block : blocks) {
    pins_.erase(block);
    rerank(block);
  }
}

void EvictionRanks::expire_pins(int64_t now_us) {
  for (BlockId block : pins_.expire(now_us)) rerank(block);
}

void EvictionRanks::hole_changed(bool damaged) {
  holes_ += damaged ? size_t{1} : size_t{0} - 1;
  stale_ = true;
}

void EvictionRanks::refresh() {
  if (!std::exchange(stale_, false)) return;
  for (Tier tier : kTiers) index_.evictable(tier).rerank_all();
}

void EvictionRanks::added(BlockId block) {
  const BlockId parent = index_.entry(block).parent;
  if (parent != kNoBlock && is_tail(block)) tails_.emplace(parent, block);
}

void EvictionRanks::forget(BlockId block) {
  pins_.erase(block);
  const auto id = static_cast<size_t>(block);
  if (id < done_.size()) done_[id] = 0;
  const auto [first, last] = tails_.equal_range(index_.entry(block).parent);
  const auto own =
      std::find_if(first, last, [&](const auto& tail) { return tail.second == block; });
  if (own != last) tails_.erase(own);
}

size_t EvictionRanks::memory_bytes() const {
  size_t bytes = done_.capacity();
  for (const Duel& duel : duels_) bytes += duel.memory_bytes();
  return bytes;
}

}  // namespace ember
