// Making room by an epoch that goes with the coldest of its blocks.
#include <memory>
#include <utility>

#include "store/cache/offload_executor.h"

namespace ember {
namespace {

constexpr size_t kMostEpochs = 256;  // to choose from
constexpr size_t kSample = 32;       // blocks of an epoch, to judge it by
constexpr size_t kMostOfABranch = 4096;  // blocks that go with one of the epoch's
constexpr size_t kMostLooks = 65'536;    // at what hangs on the epoch's blocks

}  // namespace

// The tier's epochs, as far as they are known; which one goes is decided when they are.
void OffloadExecutor::survey_epochs(const RoomWanted& room) {
  DiskTier* disk = context_.disk;
  const auto found = std::make_shared<std::vector<DiskTier::EpochSample>>();
  on_write_lane(
      [disk, found]() -> Status {
        *found = disk->sample_epochs(kMostEpochs, kSample);
        return {};
      },
      [this, found, room](const Status&) { retire_one_of(*found, room); });
}

std::optional<EvictionOrder> OffloadExecutor::disk_order(const BlockHash& hash) const {
  const BlockId block = context_.ledger.index().find(hash);
  return block == kNoBlock ? std::nullopt : context_.ledger.disk_order(block);
}

void OffloadExecutor::retire_one_of(const std::vector<DiskTier::EpochSample>& samples,
                                    const RoomWanted& room) {
  context_.ledger.ranks().refresh();
  std::vector<EpochView> views;
  for (const DiskTier::EpochSample& sample : samples) {
    EpochView& view = views.emplace_back();
    view.epoch = sample.epoch;
    view.bytes = sample.bytes;
    view.live_bytes = sample.live_bytes;
    for (const BlockHash& hash : sample.live) view.sample.push_back(disk_order(hash));
  }
  const std::optional<RetireChoice> choice = choose_epoch(views);
  if (!choice) {
    static_cast<void>(evict_in_order(room));
    return;
  }
  DiskTier* disk = context_.disk;
  const auto found = std::make_shared<std::vector<DiskTier::LiveBlock>>();
  on_write_lane(
      [disk, found, epoch = views[choice->index].epoch]() -> Status {
        *found = disk->live_blocks(epoch);
        return {};
      },
      [this, found, room, epoch = views[choice->index], cold = choice->cold](const Status&) {
        give_up_blocks(*found, epoch, cold, room);
      });
}

// Erases the coldest of what is live in an epoch, and asks for room.
void OffloadExecutor::give_up_blocks(const std::vector<DiskTier::LiveBlock>& live,
                                     const EpochView& epoch,
                                     const std::optional<EvictionOrder>& cold,
                                     const RoomWanted& room) {
  BlockLedger& ledger = context_.ledger;
  ledger.ranks().refresh();
  std::vector<EpochBlock> blocks;
  for (const DiskTier::LiveBlock& block : live) {
    blocks.push_back({block.stored_bytes, disk_order(block.hash)});
  }
  const GiveUp plan = plan_give_up(blocks, epoch.bytes, cold);
  Victims victims;
  add_evicted(victims);
  BlockLedger::BranchSearch search{kMostOfABranch, kMostLooks, {}};
  uint64_t given_up = 0;
  for (size_t i = 0; i < plan.order.size() && (i < plan.cold || given_up < plan.bytes); ++i) {
    const DiskTier::LiveBlock& one = live[plan.order[i]];
    const BlockId block = ledger.index().find(one.hash);
    if (block != kNoBlock && ledger.entry(block).in(Tier::kDisk)) {  // else gone with a branch
      const std::vector<BlockLedger::DiskVictim> branch =
          ledger.take_branch(block, *blocks[plan.order[i]].order, search);
      for (const BlockLedger::DiskVictim& victim : branch) add_victim(victims, victim);
      context_.counters.epoch_evictions += branch.size();
      if (branch.empty()) continue;
    }
    given_up += one.stored_bytes;
  }
  // Too much of it hangs together with what stays: others go in order.
  while (given_up < plan.bytes && victims.bytes < room.wanted && add_victim(victims)) {
  }
  victims.patient = room.patient;
  erase_victims(std::move(victims), room.needed);
}

}  // namespace ember
