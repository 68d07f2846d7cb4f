// Entries, slots and evictions kept in step.
#include "store/cache/block_ledger.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace ember {

BlockLedger::BlockLedger(ScopeBook& scopes, uint32_t block_tokens, DevicePool& device,
                         HostTier& host, const Clock& clock,
                         const EvictionRanks::Options& eviction)
    : scopes_(scopes),
      index_(block_tokens),
      block_tokens_(block_tokens),
      device_(device),
      host_(host),
      clock_(clock),
      residents_{std::vector<BlockId>(device.slots().size(), kNoBlock),
                 std::vector<BlockId>(host.slots().size(), kNoBlock)},
      opened_unix_us_(static_cast<uint64_t>(std::max<int64_t>(clock.unix_us(), 0))),
      use_counter_(opened_unix_us_),
      numerics_build_(eviction.numerics_build),
      ranks_(index_, block_tokens, eviction) {}

BlockNotes& BlockLedger::notes(BlockId block) {
  return const_cast<BlockNotes&>(std::as_const(*this).notes(block));
}

const BlockNotes& BlockLedger::notes(BlockId block) const {
  const auto id = static_cast<size_t>(block);
  EMBER_CHECK(id < notes_.size(), "a block without notes");
  return notes_[id];
}

const BlockHash& BlockLedger::parent_hash(BlockId block) const {
  const BlockId parent = entry(block).parent;
  return parent == kNoBlock ? scopes_.hasher(index_.scope(block)).root() : entry(parent).hash;
}

ScopeId BlockLedger::payer(BlockId block) const {
  const ScopeId scope = index_.scope(block);
  if (scope != kSharedScope) return scope;
  const auto found = publishers_.find(block);
  return found == publishers_.end() ? kSharedScope : found->second;
}

void BlockLedger::set_publisher(BlockId block, ScopeId publisher) {
  EMBER_CHECK(index_.scope(block) == kSharedScope, "only shared blocks are published");
  EMBER_CHECK(!entry(block).in(Tier::kDisk), "who pays is known before a block is stored");
  if (publisher != kSharedScope) publishers_[block] = publisher;
}

std::string BlockLedger::publisher(BlockId block) const {
  const auto found = publishers_.find(block);
  return found == publishers_.end() ? std::string() : scopes_.name(found->second);
}

std::vector<BlockId> BlockLedger::published_by(ScopeId publisher) const {
  std::vector<BlockId> blocks;
  for (const auto& [block, by] : publishers_) {
    if (by == publisher) blocks.push_back(block);
  }
  return blocks;
}

BlockId BlockLedger::insert(ScopeId scope, BlockId parent, TokenSpan tokens, const BlockHash& hash,
                            uint64_t numerics_build) {
  const BlockId known = index_.find_child(scope, parent, tokens);
  if (known != kNoBlock) return known;
  const BlockId block = index_.insert(scope, parent, tokens, hash, numerics_build, ++use_counter_);
  const auto id = static_cast<size_t>(block);
  notes_.reach(id);
  notes_[id] = BlockNotes{};
  notes_[id].last_use_unix_us = clock_.unix_us();
  ranks_.added(block);
  return block;
}

void BlockLedger::use(const std::vector<BlockId>& blocks, bool hit) {
  const int64_t unix_us = clock_.unix_us();
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    index_.touch(*block, ++use_counter_, hit);
    ranks_.used(*block);
    BlockNotes& note = notes(*block);
    note.last_use_unix_us = unix_us;
    if (note.touched || is_tail(*block)) continue;
    note.touched = true;
    touched_.emplace_back(*block, entry(*block).hash);
  }
}

// Blocks of one use have one time; of these the deepest is the oldest, as in use().
uint64_t BlockLedger::use_order(uint32_t position, const TouchRecord& touch,
                                uint64_t opened_unix_us) {
  const auto used = static_cast<uint64_t>(std::max<int64_t>(touch.last_use_unix_us, 0));
  const uint64_t known = std::min(used, opened_unix_us);  // a clock may have been put back
  return known - std::min<uint64_t>(known, position);
}

BlockLedger::Adopted BlockLedger::adopt(ScopeId scope, BlockId parent, TokenSpan tokens,
                                        const BlockHash& hash, uint64_t numerics_build,
                                        const TouchRecord& touch) {
  const size_t known = index_.size();
  const uint32_t position = parent == kNoBlock ? 0 : entry(parent).position + 1;
  const BlockId block = index_.insert(scope, parent, tokens, hash, numerics_build,
                                      use_order(position, touch, opened_unix_us_));
  if (index_.size() == known) return {block, false};
  const auto id = static_cast<size_t>(block);
  notes_.reach(id);
  notes_[id] = BlockNotes{};
  notes_[id].last_use_unix_us = touch.last_use_unix_us;
  notes_[id].earlier_hits = touch.hits;
  ranks_.added(block);
  return {block, true};
}

void BlockLedger::recall(BlockId block, const TouchRecord& touch) {
  index_.touch(block, use_order(entry(block).position, touch, opened_unix_us_), false);
  BlockNotes& note = notes(block);
  note.last_use_unix_us = std::max(note.last_use_unix_us, touch.last_use_unix_us);
  note.earlier_hits = touch.hits;
}

void BlockLedger::loaded(uint64_t limit_bytes, std::vector<EvictionRanks::Remembered> by_use,
                         std::vector<BlockId> blocks) {
  loaded_ = true;
  expect_disk_capacity(limit_bytes);
  ranks_.begin_recall(std::move(by_use), std::move(blocks));
}

void BlockLedger::expect_disk_capacity(uint64_t limit_bytes) {
  if (!loaded_ || disk_was_full_ || disk_blocks_ == 0) return;
  const uint64_t mean = std::max<uint64_t>(1, disk_payload_bytes_ / disk_blocks_);
  const size_t expected = std::max<size_t>(disk_blocks_, limit_bytes / mean);
  const size_t known = ranks_.duel(Tier::kDisk).capacity();
  const size_t apart = expected > known ? expected - known : known - expected;
  if (apart > known / 16) ranks_.set_disk_capacity(expected);
}

void BlockLedger::disk_is_full() {
  disk_was_full_ = true;
  ranks_.set_disk_capacity(disk_blocks_);
}

void BlockLedger::recall_disk_capacity(size_t blocks) {
  disk_was_full_ = true;
  ranks_.set_disk_capacity(blocks);
}

std::vector<std::pair<BlockHash, TouchRecord>> BlockLedger::take_touches() {
  std::vector<std::pair<BlockHash, TouchRecord>> touches;
  for (const auto& [block, hash] : touched_) {
    if (index_.find(hash) != block) continue;  // forgotten since
    BlockNotes& note = notes(block);
    note.touched = false;
    if (!entry(block).in(Tier::kDisk)) continue;
    touches.push_back({hash, {note.last_use_unix_us, note.earlier_hits + entry(block).hits}});
  }
  touched_.clear();
  return touches;
}

void BlockLedger::let_go(BlockId block) {
  EMBER_CHECK(notes(block).holders > 0, "a block is let go twice");
  --notes(block).holders;
  forget_if_gone(block);
}

bool BlockLedger::unleased(BlockId block, Tier tier) const {
  const SlotPool& slots = tier == Tier::kDevice ? device_.slots() : host_.slots();
  return slots.leases(entry(block).place[static_cast<size_t>(tier)]) == 0;
}

bool BlockLedger::is_last_copy(BlockId block, Tier tier) const {
  const BlockEntry& known = entry(block);
  return std::none_of(kAllTiers.begin(), kAllTiers.end(),
                      [&](Tier other) { return other != tier && known.in(other); });
}

// Whether the copy is one that eviction may take: not what a running request names (`idle`), or at
// least not its last copy; not the last copy of what is pinned, which on disk must stay there.
bool BlockLedger::may_lose(BlockId block, Tier tier, bool idle) const {
  const bool named = notes(block).holders > 0;
  if (!named && !ranks_.pinned(block)) return true;
  if (named && idle) return false;
  if (ranks_.pinned(block) && tier == Tier::kDisk) return false;
  return !is_last_copy(block, tier);
}

std::optional<SlotLease> BlockLedger::take_slot(Tier tier) {
  std::optional<SlotLease> slot = pool(tier).take();
  while (!slot) {
    std::optional<BlockId> victim = oldest_leaf(tier);
    if (!victim) victim = spare_copy(tier);
    if (!victim) return std::nullopt;
    drop_copy(*victim, tier);
    slot = pool(tier).take();
  }
  return slot;
}

std::optional<BlockId> BlockLedger::oldest_leaf(Tier tier) {
  ranks_.refresh();
  const LeafLru& leaves = std::as_const(index_).evictable(tier);
  std::optional<BlockId> victim;
  for (const bool idle : {true, false}) {
    if (victim) break;
    victim = leaves.oldest([&](BlockId block) {
      return unleased(block, tier) && may_lose(block, tier, idle);
    });
  }
  return victim;
}

bool BlockLedger::shed_device_leaf() {
  const std::optional<BlockId> victim = oldest_leaf(Tier::kDevice);
  if (victim) drop_copy(*victim, Tier::kDevice);
  return victim.has_value();
}

// The oldest copy that has another one elsewhere, inner blocks included: where every leaf is leased
// or waits for a slot below, something must move, and this loses nothing.
std::optional<BlockId> BlockLedger::spare_copy(Tier tier) const {
  std::optional<BlockId> oldest;
  for (BlockId block : residents_[static_cast<size_t>(tier)]) {
    if (block == kNoBlock || !unleased(block, tier) || is_last_copy(block, tier)) continue;
    if (!oldest || entry(block).last_use < entry(*oldest).last_use) oldest = block;
  }
  return oldest;
}

SlotLease BlockLedger::lease_copy(BlockId block, Tier tier) {
  EMBER_CHECK(entry(block).in(tier), "a copy is leased that is not there");
  return pool(tier).share(entry(block).place[static_cast<size_t>(tier)]);
}

void BlockLedger::publish(BlockId block, Tier tier, const SlotLease& lease) {
  if (entry(block).in(tier)) return;
  pool(tier).publish(lease.slot());
  index_.set_place(block, tier, lease.slot());
  residents(tier)[static_cast<size_t>(lease.slot())] = block;
}

void BlockLedger::unpublish_device(BlockId block, const SlotLease& lease) {
  if (entry(block).place[static_cast<size_t>(Tier::kDevice)] != lease.slot()) return;
  device_.slots().reopen(lease.slot());
  residents(Tier::kDevice)[static_cast<size_t>(lease.slot())] = kNoBlock;
  index_.clear_place(block, Tier::kDevice);
  forget_if_gone(block);
}

void BlockLedger::set_stored(BlockId block, int32_t epoch, uint64_t stored_bytes) {
  uncount_disk(block);
  index_.set_place(block, Tier::kDisk, epoch);
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  notes(block).stored_bytes = static_cast<uint32_t>(std::min(stored_bytes, kMost));
  notes(block).read_failed = false;
  notes(block).stale_record = false;
  count_disk(block);
}

void BlockLedger::count_disk(BlockId block) {
  const uint64_t stored_bytes = notes(block).stored_bytes;
  scopes_.counters(payer(block)).disk_bytes += stored_bytes;
  if (entry(block).numerics_build != numerics_build_) ++foreign_on_disk_;
  if (is_tail(block)) {
    ++tails_on_disk_;
    return;
  }
  ++disk_blocks_;
  disk_payload_bytes_ += stored_bytes;
}

// No longer counted as on disk, if it was there; the caller tells the index.
void BlockLedger::uncount_disk(BlockId block) {
  if (!entry(block).in(Tier::kDisk)) return;
  scopes_.counters(payer(block)).disk_bytes -= notes(block).stored_bytes;
  if (entry(block).numerics_build != numerics_build_) --foreign_on_disk_;
  if (is_tail(block)) {
    --tails_on_disk_;
    return;
  }
  --disk_blocks_;
  disk_payload_bytes_ -= notes(block).stored_bytes;
}

void BlockLedger::clear_disk(BlockId block) {
  uncount_disk(block);
  index_.clear_place(block, Tier::kDisk);
}

void BlockLedger::drop_copy(BlockId block, Tier tier) {
  const int32_t place = entry(block).place[static_cast<size_t>(tier)];
  const bool last = is_last_copy(block, tier);
  if (tier == Tier::kDisk) {
    clear_disk(block);
  } else {
    index_.clear_place(block, tier);
    retire(tier, place);
  }
  if (last) {
    ++evicted_;
    // Its children cannot be reached until it is computed again: an honest hole.
    if (entry(block).children > 0) set_damaged(block, true);
  }
  forget_if_gone(block);
}

void BlockLedger::retire(Tier tier, int32_t slot) {
  if (tier != Tier::kDevice && tier != Tier::kHost) return;
  residents(tier)[static_cast<size_t>(slot)] = kNoBlock;
  pool(tier).retire(slot);
}

void BlockLedger::set_damaged(BlockId block, bool damaged) {
  if (entry(block).damaged == damaged) return;
  index_.set_damaged(block, damaged);
  if (damaged) {
    ++holes_;
  } else {
    --holes_;
  }
  ranks_.hole_changed(damaged);
}

void BlockLedger::mark_damaged(BlockId block) {
  const BlockEntry& known = entry(block);
  if (!known.in(Tier::kDevice) && !known.in(Tier::kHost)) {
    set_damaged(block, true);
  } else if (known.in(Tier::kDisk)) {
    clear_disk(block);  // computed meanwhile: it is written again
    notes(block).stale_record = !is_tail(block);
  }
}

bool BlockLedger::forget_empty_hole(const BlockHash& hash) {
  const BlockId block = index_.find(hash);
  if (block == kNoBlock) return true;  // with the last of its children
  if (entry(block).children > 0 || entry(block).anywhere()) return false;
  forget_if_gone(block);
  return true;
}

void BlockLedger::abandon_stale_record(BlockId block) {
  if (!notes(block).stale_record || entry(block).children > 0) return;
  notes(block).stale_record = false;
  stale_records_.push_back(entry(block).hash);
}

void BlockLedger::reset(BlockId block, uint64_t numerics_build) {
  hold(block);  // the entry stays through the loss of its copies
  if (entry(block).in(Tier::kDisk) && !is_tail(block)) notes(block).stale_record = true;
  clear_disk(block);
  for (Tier tier : kAllTiers) {
    const int32_t place = entry(block).place[static_cast<size_t>(tier)];
    if (place < 0) continue;
    index_.clear_place(block, tier);
    retire(tier, place);
  }
  set_damaged(block, false);
  index_.set_numerics_build(block, numerics_build);
  --notes(block).holders;
}

// Entries that nothing needs go, and with the last child a parent that was kept for it.
void BlockLedger::forget_if_gone(BlockId block) {
  while (block != kNoBlock) {
    const BlockEntry& known = entry(block);
    if (known.anywhere() || known.children > 0 || notes(block).holders > 0) return;
    const BlockId parent = known.parent;
    abandon_stale_record(block);
    set_damaged(block, false);
    publishers_.erase(block);
    ranks_.forget(block);
    index_.erase(block);
    block = parent;
  }
}

std::optional<BlockLedger::DiskVictim> BlockLedger::take_disk_victim() {
  ranks_.refresh();
  const LeafLru& leaves = std::as_const(index_).evictable(Tier::kDisk);
  std::optional<BlockId> victim;
  for (const bool idle : {true, false}) {
    if (victim) break;
    victim = leaves.oldest([&](BlockId block) { return may_leave_disk(block, idle); });
  }
  if (!victim) return std::nullopt;
  return take_from_disk(*victim);
}

bool BlockLedger::may_leave_disk(BlockId block, bool idle) const {
  const BlockNotes& note = notes(block);
  return note.disk_readers == 0 && may_lose(block, Tier::kDisk, idle);
}

BlockLedger::DiskVictim BlockLedger::take_from_disk(BlockId block) {
  DiskVictim taken{entry(block).hash, is_tail(block), notes(block).stored_bytes};
  drop_copy(block, Tier::kDisk);
  return taken;
}

// A pass looks at the payer's own blocks alone, and finds all leaves that are needed; another one
// is for those that became leaves by it.
std::vector<BlockLedger::DiskVictim> BlockLedger::take_victims_of(ScopeId payer, uint64_t bytes) {
  std::vector<DiskVictim> taken;
  uint64_t freed = 0;
  bool found = true;
  while (freed < bytes && found) {
    found = false;
    for (BlockId block : leaves_of(payer)) {
      if (freed >= bytes) break;
      leave_ram(block);
      taken.push_back(take_from_disk(block));
      freed += taken.back().stored_bytes;
      found = true;
    }
  }
  return taken;
}

// A copy in RAM would keep the block's parent on the disk.
void BlockLedger::leave_ram(BlockId block) {
  if (notes(block).holders > 0) return;
  for (Tier tier : {Tier::kDevice, Tier::kHost}) {
    if (entry(block).in(tier) && unleased(block, tier)) drop_copy(block, tier);
  }
}

// Of what a payer has on disk, all that may go now, the oldest first.
std::vector<BlockId> BlockLedger::leaves_of(ScopeId payer) const {
  std::vector<BlockId> leaves = index_.blocks_of(payer);
  const std::vector<BlockId> published = published_by(payer);
  leaves.insert(leaves.end(), published.begin(), published.end());
  std::erase_if(leaves, [&](BlockId block) {
    return !std::as_const(index_).evictable(Tier::kDisk).contains(entry(block).last_use, block) ||
           !may_leave_disk(block, false);
  });
  std::sort(leaves.begin(), leaves.end(), [&](BlockId a, BlockId b) {
    return entry(a).last_use < entry(b).last_use;
  });
  return leaves;
}

std::vector<BlockLedger::DiskVictim> BlockLedger::take_aged_victims(int64_t before_unix_us,
                                                                    size_t most) {
  std::vector<BlockId> aged;
  const LeafLru& leaves = std::as_const(index_).evictable(Tier::kDisk);
  static_cast<void>(leaves.oldest([&](BlockId block) {
    const bool old = notes(block).last_use_unix_us < before_unix_us;
    if (old && may_leave_disk(block, true)) aged.push_back(block);
    return aged.size() >= most;
  }));
  std::vector<DiskVictim> victims;
  for (const BlockId block : aged) victims.push_back(take_from_disk(block));
  return victims;
}

void BlockLedger::drop_tier(Tier tier) {
  EMBER_CHECK(tier == Tier::kDevice || tier == Tier::kHost, "only RAM tiers can be dropped");
  const std::vector<BlockId> resident = residents(tier);
  for (BlockId block : resident) {
    if (block == kNoBlock) continue;
    const BlockEntry& known = entry(block);
    const bool lower = known.in(Tier::kDisk) || (tier == Tier::kDevice && known.in(Tier::kHost));
    if (known.in(tier) && lower && !known.damaged && unleased(block, tier)) drop_copy(block, tier);
  }
}

BlockLedger::Census BlockLedger::census() const {
  const uint64_t stranded = index_.gaps() == 0 ? 0 : full_census().stranded;
  return {stranded, foreign_on_disk_, tails_on_disk_};
}

BlockLedger::Census BlockLedger::full_census() const {
  Census census;
  std::vector<char> reachable(notes_.size(), 0);
  std::vector<char> under_hole(notes_.size(), 0);
  for (BlockId block : index_.all_blocks()) {  // parents before children
    const BlockEntry& known = entry(block);
    const auto id = static_cast<size_t>(block);
    const bool root = known.parent == kNoBlock;
    const auto parent = root ? size_t{0} : static_cast<size_t>(known.parent);
    const bool parent_reachable = root || reachable[parent] != 0;
    under_hole[id] = known.damaged || (!root && under_hole[parent] != 0) ? 1 : 0;
    reachable[id] = parent_reachable && known.anywhere() && !known.damaged ? 1 : 0;
    if (known.anywhere() && !parent_reachable && under_hole[id] == 0) ++census.stranded;
    if (known.in(Tier::kDisk) && known.numerics_build != numerics_build_) ++census.foreign_builds;
    if (known.in(Tier::kDisk) && is_tail(block)) ++census.tails_on_disk;
  }
  return census;
}

}  // namespace ember
