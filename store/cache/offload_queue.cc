// Jobs of the offload queue and their ancestors.
#include "store/cache/offload_queue.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace ember {

OffloadQueue::~OffloadQueue() {
  EMBER_CHECK(jobs_.empty(), "the cache closes while blocks are being offloaded");
}

bool OffloadQueue::add(BlockId block, SlotLease device) {
  if (queued_.contains(block)) return false;
  std::vector<BlockId> ancestors;
  for (BlockId above = context_.ledger.entry(block).parent;
       above != kNoBlock && !stored(above) && !queued_.contains(above);
       above = context_.ledger.entry(above).parent) {
    const BlockEntry& entry = context_.ledger.entry(above);
    if (!entry.in(Tier::kDevice) && !entry.in(Tier::kHost)) break;
    ancestors.push_back(above);
  }
  for (auto above = ancestors.rbegin(); above != ancestors.rend(); ++above) {
    const bool on_device = context_.ledger.entry(*above).in(Tier::kDevice);
    push(*above, on_device ? context_.ledger.lease_copy(*above, Tier::kDevice) : SlotLease());
  }
  push(block, std::move(device));
  return true;
}

void OffloadQueue::push(BlockId block, SlotLease device) {
  auto job = std::make_unique<OffloadJob>();
  job->order = next_order_++;
  job->block = block;
  job->parent = context_.ledger.entry(block).parent;
  job->identity = context_.identity_of(block);
  if (context_.ledger.entry(block).in(Tier::kHost)) {
    job->host = context_.ledger.lease_copy(block, Tier::kHost);
    job->stage = OffloadStage::kHeld;
  } else {
    job->device = std::move(device);
  }
  context_.ledger.hold(block);
  if (job->parent != kNoBlock) context_.ledger.hold(job->parent);
  queued_.insert(block);
  jobs_.push_back(std::move(job));
}

OffloadJob* OffloadQueue::newest_in(OffloadStage stage) {
  const auto found = std::find_if(jobs_.rbegin(), jobs_.rend(), [stage](const auto& job) {
    return job->stage == stage;
  });
  return found == jobs_.rend() ? nullptr : found->get();
}

void OffloadQueue::put_back(OffloadJob* job) {
  const BlockId block = job->block;
  context_.ledger.hold(block);
  SlotLease device = std::move(job->device);
  remove(job);
  add(block, std::move(device));
  context_.ledger.let_go(block);
}

void OffloadQueue::remove(OffloadJob* job) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const auto& queued) { return queued.get() == job; });
  EMBER_CHECK(found != jobs_.end(), "a job is removed that is not queued");
  const std::unique_ptr<OffloadJob> removed = std::move(*found);
  jobs_.erase(found);
  queued_.erase(removed->block);
  removed->device.release();
  removed->host.release();
  context_.ledger.let_go(removed->block);
  if (removed->parent != kNoBlock) context_.ledger.let_go(removed->parent);
}

std::vector<OffloadItem> OffloadQueue::items() const {
  std::vector<OffloadItem> items;
  items.reserve(jobs_.size());
  std::unordered_map<BlockId, size_t> earlier;
  for (const auto& job : jobs_) {
    OffloadItem item;
    item.stage = job->stage;
    item.not_before_us = job->not_before_us;
    // While it is coded or written that is a task's to touch, and none of the plan's concern.
    item.coded = job->stage == OffloadStage::kHeld && !job->coded.payloads.empty();
    item.parent_stored = job->parent == kNoBlock || stored(job->parent);
    if (!item.parent_stored) {
      const auto found = earlier.find(job->parent);
      if (found != earlier.end()) item.parent_item = found->second;
    }
    earlier.emplace(job->block, items.size());
    items.push_back(item);
  }
  return items;
}

}  // namespace ember
