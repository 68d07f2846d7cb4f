// Whole branches that leave the disk with their epoch; single blocks that are asked to go.
#include <utility>

#include "store/cache/block_ledger.h"

namespace ember {

std::optional<EvictionOrder> BlockLedger::disk_order(BlockId block) const {
  if (!entry(block).in(Tier::kDisk) || !may_leave_disk(block, true)) return std::nullopt;
  const EvictionRank rank = ranks_.rank(Tier::kDisk, block);
  if (rank >= EvictionRank::kExpected) return std::nullopt;
  return EvictionOrder{rank, entry(block).last_use};
}

// What stays in the branch keeps the block, so all of it is looked at before any of it is taken.
bool BlockLedger::find_branch(const EvictionOrder& up_to, BranchSearch& search,
                              std::vector<BlockId>& branch) const {
  for (size_t i = 0; i < branch.size(); ++i) {
    const BlockId block = branch[i];
    if (search.looks_left == 0 || search.staying.contains(block)) return false;
    --search.looks_left;
    // A child that is left with a copy in RAM would keep its parent on the disk.
    const bool in_ram = entry(block).in(Tier::kDevice) || entry(block).in(Tier::kHost);
    if (i > 0 && in_ram) return false;
    if (entry(block).in(Tier::kDisk)) {
      const std::optional<EvictionOrder> order = disk_order(block);
      if (!order || *order > up_to) return false;
    } else if (notes(block).holders > 0) {
      return false;  // soon to be written
    }
    const std::vector<BlockId> children = index_.children(index_.scope(block), block);
    if (children.size() < entry(block).children) return false;  // other scopes' hang on it too
    branch.insert(branch.end(), children.begin(), children.end());
    if (branch.size() > search.most_of_a_branch) return false;
  }
  return true;
}

std::vector<BlockLedger::DiskVictim> BlockLedger::take_branch(BlockId block,
                                                              const EvictionOrder& up_to,
                                                              BranchSearch& search) {
  std::vector<BlockId> branch{block};
  if (!find_branch(up_to, search, branch)) {
    search.staying.insert(block);
    return {};
  }
  // Where a hole stood between, it goes with the last of its children.
  std::erase_if(branch, [&](BlockId one) { return !entry(one).in(Tier::kDisk); });
  std::vector<DiskVictim> taken;
  const LeafLru& leaves = std::as_const(index_).evictable(Tier::kDisk);
  for (auto one = branch.rbegin(); one != branch.rend(); ++one) {
    if (!leaves.contains(entry(*one).last_use, *one)) break;  // and so none above it
    taken.push_back(take_from_disk(*one));
  }
  return taken;
}

BlockLedger::Forgotten BlockLedger::forget(BlockId block) {
  const BlockEntry& known = entry(block);
  if (notes(block).holders > 0 || notes(block).disk_readers > 0) return Forgotten::kInUse;
  std::vector<Tier> tiers;
  for (const Tier tier : {Tier::kDevice, Tier::kHost}) {
    if (!known.in(tier)) continue;
    if (!unleased(block, tier)) return Forgotten::kInUse;
    tiers.push_back(tier);
  }
  if (ranks_.pinned(block)) return Forgotten::kPinned;
  if (known.children > 0) return Forgotten::kNeeded;
  if (known.in(Tier::kDisk)) tiers.push_back(Tier::kDisk);
  for (const Tier tier : tiers) drop_copy(block, tier);
  if (tiers.empty()) forget_if_gone(block);
  return Forgotten::kDone;
}

}  // namespace ember
