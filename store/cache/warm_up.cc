// Reads of blocks ahead of any request, one host slot each.
#include "store/cache/warm_up.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/cache/host_read.h"
#include "store/cache/warm_up_plan.h"

namespace ember {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

}  // namespace

WarmUp::~WarmUp() { EMBER_CHECK(!reading(), "the cache closes while a block is being read"); }

void WarmUp::begin(const std::string& store, uint64_t bytes_per_second,
                   std::function<void()> planned) {
  rate_ = bytes_per_second;
  allowed_until_us_ = context_.clock.now_us();
  const uint32_t slots = context_.host_tier.slots().size();
  const auto found = std::make_shared<std::vector<BlockHash>>();
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [store, found, most = slots - slots / kSpareShare]() -> Status {
        WarmUpPlan plan(most);
        // A log that cannot be read whole still says something.
        static_cast<void>(
            visit_access_log(store, [&](const AccessEntry& entry) { plan.add(entry); }));
        *found = plan.blocks();
        return {};
      });
  context_.tickets.on(ticket, [this, found, done = std::move(planned)](const Status&) {
    blocks_ = std::move(*found);
    planned_ = true;
    done();
  });
}

void WarmUp::stop() {
  rate_ = 0;
  blocks_.clear();
  next_ = 0;
}

void WarmUp::advance(bool working) {
  if (rate_ == 0 || !planned_ || context_.loading || context_.disk == nullptr) return;
  const int64_t now = context_.clock.now_us();
  if (working) quiet_from_us_ = now + kQuietUs;
  if (due(now)) start_reads();
}

bool WarmUp::due(int64_t now_us) {
  const int64_t gained_us = std::clamp<int64_t>(now_us - allowed_until_us_, 0, kSecondUs);
  const auto rate = static_cast<int64_t>(rate_);
  const auto gained = static_cast<int64_t>(static_cast<double>(rate) *
                                           static_cast<double>(gained_us) / kSecondUs);
  if (gained > 0) {
    allowance_ = std::min(allowance_ + gained, rate);
    allowed_until_us_ = now_us;
  }
  return allowance_ > 0 && now_us >= quiet_from_us_;
}

void WarmUp::start_reads() {
  while (allowance_ > 0 && reads_under_way_ < kReadsAtOnce && next_ < blocks_.size()) {
    const BlockId block = context_.ledger.index().find(blocks_[next_]);
    if (block == kNoBlock || !can_be_read_ahead(context_, block)) {
      ++next_;
      continue;
    }
    const uint32_t spare = context_.host_tier.slots().size() / kSpareShare;
    if (context_.host_tier.slots().free_count() <= spare) return stop();  // others filled it
    std::optional<SlotLease> slot = context_.host_tier.slots().take();
    if (!slot) return stop();
    ++next_;
    start_read(block, std::move(*slot));
  }
  if (next_ == blocks_.size() && !reading()) stop();
}

void WarmUp::start_read(BlockId block, SlotLease slot) {
  ++reads_under_way_;
  const uint64_t stored_bytes = context_.ledger.notes(block).stored_bytes;
  allowance_ -= static_cast<int64_t>(stored_bytes);
  read_ahead(context_, block, std::move(slot),
             [this, stored_bytes](BlockId, bool published, const SlotLease&) {
               --reads_under_way_;
               if (!published) return;
               ++warmed_blocks_;
               warmed_bytes_ += stored_bytes;
             });
}

void WarmUp::add_to(BlockCacheStats& stats) const {
  stats.warmed_blocks = warmed_blocks_;
  stats.warmed_bytes = warmed_bytes_;
  stats.warm_up_left = blocks_.size() - next_;
}

}  // namespace ember
