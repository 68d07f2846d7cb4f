// Waiting requests' reads, oldest request first, front of the prefix first.
#include "store/cache/prefetcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/cache/host_read.h"

namespace ember {

struct Prefetcher::Job {
  std::vector<BlockHash> blocks;
  size_t next = 0;
  std::vector<SlotLease> leases;
  uint32_t reads = 0;
  bool dropped = false;
};

class Prefetcher::Handle final : public Prefetch {
 public:
  Handle(Prefetcher& owner, std::shared_ptr<Job> job) : owner_(owner), job_(std::move(job)) {}
  ~Handle() override { owner_.drop(job_.get()); }
  size_t blocks_in_ram() const override { return job_->leases.size(); }

 private:
  Prefetcher& owner_;
  std::shared_ptr<Job> job_;
};

Prefetcher::~Prefetcher() {
  EMBER_CHECK(jobs_.empty() && !reading(), "the cache closes while a request is prefetched");
}

std::unique_ptr<Prefetch> Prefetcher::begin(std::vector<BlockHash> blocks) {
  auto job = std::make_shared<Job>();
  job->blocks = std::move(blocks);
  jobs_.push_back(job);
  return std::make_unique<Handle>(*this, std::move(job));
}

size_t Prefetcher::kept_slots() const {
  const SlotPool& slots = context_.host_tier.slots();
  std::vector<uint32_t> ours(slots.size());
  for (const std::shared_ptr<Job>& job : jobs_) {
    for (const SlotLease& lease : job->leases) ++ours[static_cast<size_t>(lease.slot())];
  }
  size_t kept = 0;
  for (size_t slot = 0; slot < ours.size(); ++slot) {
    if (ours[slot] > 0 && slots.leases(static_cast<int32_t>(slot)) == ours[slot]) ++kept;
  }
  return kept;
}

void Prefetcher::drop(Job* job) {
  job->dropped = true;
  leases_ -= job->leases.size();
  job->leases.clear();
  std::erase_if(jobs_, [job](const std::shared_ptr<Job>& kept) { return kept.get() == job; });
}

void Prefetcher::advance(bool restoring) {
  if (restoring || context_.disk == nullptr) return;
  for (const std::shared_ptr<Job>& job : jobs_) {
    while (job->next < job->blocks.size()) {
      if (reads_under_way_ >= kReadsAtOnce || leases_ >= most_leases()) return;
      if (!advance_one(job)) return;
    }
  }
}

// False: there is no host slot.
bool Prefetcher::advance_one(const std::shared_ptr<Job>& job) {
  const BlockId block = context_.ledger.index().find(job->blocks[job->next]);
  if (block != kNoBlock && context_.ledger.entry(block).in(Tier::kHost)) {
    job->leases.push_back(context_.ledger.lease_copy(block, Tier::kHost));
    ++leases_;
  } else if (block != kNoBlock && can_be_read_ahead(context_, block)) {
    std::optional<SlotLease> slot = context_.ledger.take_host_slot();
    if (!slot) return false;
    ++leases_;
    ++job->reads;
    ++reads_under_way_;
    read_ahead(context_, block, std::move(*slot),
               [this, job](BlockId, bool published, const SlotLease& read) {
                 --reads_under_way_;
                 --job->reads;
                 if (published) ++read_blocks_;
                 if (published && !job->dropped) {
                   job->leases.push_back(read.share());
                 } else {
                   --leases_;
                 }
               });
  }
  ++job->next;
  return true;
}

}  // namespace ember
