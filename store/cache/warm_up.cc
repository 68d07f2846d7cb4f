// Reads of blocks ahead of any request, one host slot each.
#include "store/cache/warm_up.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/cache/warm_up_plan.h"

namespace ember {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

}  // namespace

// One block on its way to a host slot.
struct WarmUp::Read {
  BlockId block = kNoBlock;
  SlotLease slot;
  BlockIdentity identity;
  BlockRecord record;
};

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
    if (block == kNoBlock || !wanted(block)) {
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

bool WarmUp::wanted(BlockId block) const {
  const BlockEntry& entry = context_.ledger.entry(block);
  return entry.in(Tier::kDisk) && !entry.in(Tier::kHost) && !entry.in(Tier::kDevice) &&
         !entry.damaged && entry.numerics_build == context_.numerics_build &&
         !context_.ledger.is_tail(block);
}

void WarmUp::start_read(BlockId block, SlotLease slot) {
  const auto read = std::make_shared<Read>();
  read->block = block;
  read->identity = context_.identity_of(block);
  std::byte* bytes = context_.host_tier.at(slot.slot());
  read->slot = std::move(slot);
  context_.ledger.hold(block);
  ++context_.ledger.notes(block).disk_readers;
  ++reads_under_way_;
  allowance_ -= static_cast<int64_t>(context_.ledger.notes(block).stored_bytes);
  const uint32_t groups = context_.layout.group_count();
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [reader = context_.reader(), read, bytes, groups]() -> Status {
        EMBER_TRY(reader.read_first(read->identity, read->record, bytes));
        if (!reader.same_grouping(read->record)) return {};
        for (uint32_t group = 1; group < groups; ++group) {
          EMBER_TRY(reader.read_group(read->record, group, bytes));
        }
        return {};
      });
  context_.tickets.on(ticket, [this, read](const Status& status) { read_ended(*read, status); });
}

void WarmUp::read_ended(Read& read, const Status& status) {
  --reads_under_way_;
  BlockLedger& ledger = context_.ledger;
  const bool stored = ledger.entry(read.block).in(Tier::kDisk);
  if (status.ok() && stored && !ledger.entry(read.block).damaged) {
    ledger.publish(read.block, Tier::kHost, read.slot);
    ++warmed_blocks_;
    warmed_bytes_ += ledger.notes(read.block).stored_bytes;
  } else if (!status.ok() && stored && status.error().code == ErrorCode::kCorruption) {
    context_.damaged(read.block);
  } else if (!status.ok() && stored) {
    ++context_.counters.read_errors;
  }
  read.slot.release();
  --ledger.notes(read.block).disk_readers;
  ledger.let_go(read.block);
}

void WarmUp::add_to(BlockCacheStats& stats) const {
  stats.warmed_blocks = warmed_blocks_;
  stats.warmed_bytes = warmed_bytes_;
  stats.warm_up_left = blocks_.size() - next_;
}

}  // namespace ember
