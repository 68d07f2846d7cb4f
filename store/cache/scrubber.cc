// When the next slice is due, and what follows from what it found.
#include "store/cache/scrubber.h"

#include <algorithm>
#include <utility>

namespace ember {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr uint64_t kMostRate = uint64_t{1} << 40;
constexpr int64_t kQuietUs = 500'000;  // after a request
constexpr int64_t kSmallestSlice = 64 << 10;
constexpr int64_t kLargestSlice = 1 << 20;
constexpr uint64_t kMarkEvery = 64u << 20;

}  // namespace

Scrubber::Scrubber(CacheContext& context, const HashSecret& secret)
    : context_(context), secret_(secret) {}

void Scrubber::remember_in(const std::string& path) {
  mark_path_ = path;
  mark_ = read_scrub_mark(path);
}

void Scrubber::set_pace(uint64_t bytes_per_second, int64_t interval_us) {
  rate_ = std::min(bytes_per_second, kMostRate);
  interval_us_ = interval_us;
  allowed_until_us_ = context_.clock.now_us();
  quiet_from_us_ = allowed_until_us_ + kQuietUs;
}

void Scrubber::yield() {
  if (slice_ != nullptr) slice_->stop = true;
  quiet_from_us_ = context_.clock.now_us() + kQuietUs;
}

void Scrubber::advance(bool restoring) {
  if (rate_ == 0 || slice_ != nullptr || context_.disk == nullptr || !context_.writable) return;
  if (context_.loading) return;  // what it finds could not be marked yet
  const int64_t now = context_.clock.now_us();
  if (restoring) quiet_from_us_ = now + kQuietUs;
  if (due(now)) start_slice();
}

bool Scrubber::due(int64_t now_us) {
  const int64_t gained_us = std::min(now_us - allowed_until_us_, kSecondUs);
  const auto rate = static_cast<int64_t>(rate_);
  const int64_t gained = rate * std::max<int64_t>(gained_us, 0) / kSecondUs;
  if (gained > 0) {
    allowance_ = std::min(allowance_ + gained, rate);
    allowed_until_us_ = now_us;
  }
  if (now_us < quiet_from_us_) return false;
  if (!mark_.in_pass) {
    const bool waits = mark_.last_ended_unix_us > 0 &&
                       context_.clock.unix_us() < mark_.last_ended_unix_us + interval_us_;
    if (waits) return false;
    mark_.in_pass = true;
    mark_.after.reset();
  }
  return allowance_ >= std::min(rate, std::clamp(rate / 8, kSmallestSlice, kLargestSlice));
}

void Scrubber::start_slice() {
  slice_ = std::make_shared<ScrubSlice>();
  slice_->suspects = std::exchange(suspects_, {});
  slice_->reached = mark_.after;
  slice_->budget_bytes = static_cast<uint64_t>(std::min(allowance_, kLargestSlice));
  DiskTier* disk = context_.disk;
  Quarantine* quarantine = context_.quarantine;
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [disk, quarantine, secret = &secret_, slice = slice_]() -> Status {
        return run_scrub_slice(*disk, quarantine, *secret, *slice);
      });
  context_.tickets.on(ticket, [this](const Status& status) { slice_ended(status); });
}

void Scrubber::slice_ended(const Status& status) {
  const std::shared_ptr<ScrubSlice> slice = std::exchange(slice_, nullptr);
  allowance_ -= static_cast<int64_t>(slice->bytes);
  blocks_ += slice->blocks;
  bytes_ += slice->bytes;
  unmarked_bytes_ += slice->bytes;
  mark_.after = slice->reached;
  suspects_ = std::move(slice->suspects);
  context_.counters.read_errors += slice->read_errors;
  for (const BlockHash& hash : slice->damaged) {
    ++damaged_;
    const BlockId block = context_.ledger.index().find(hash);
    if (block == kNoBlock || context_.ledger.entry(block).damaged) continue;
    if (context_.ledger.entry(block).in(Tier::kDisk)) context_.damaged(block);
  }
  if (slice->gap) suspect(slice->gap->first, slice->gap->second);
  if (!status.ok()) {
    quiet_from_us_ = context_.clock.now_us() + 60 * kSecondUs;  // the disk has other troubles
    return;
  }
  if (slice->ended && suspects_.empty()) {
    mark_.in_pass = false;
    mark_.after.reset();
    mark_.last_ended_unix_us = context_.clock.unix_us();
    ++mark_.passes;
    unmarked_bytes_ = kMarkEvery;
  }
  if (unmarked_bytes_ >= kMarkEvery) remember();
}

// Blocks that the index knows and the disk could not list: each is read by its own key.
// Cost: linear in the entries, once for each damaged table block.
void Scrubber::suspect(const BlockHash& from, const BlockHash& to) {
  for (BlockId block : context_.ledger.index().all_blocks()) {
    const BlockEntry& entry = context_.ledger.entry(block);
    const bool stored = entry.in(Tier::kDisk) && !context_.ledger.is_tail(block);
    if (stored && !entry.damaged && from <= entry.hash && entry.hash <= to) {
      suspects_.push_back(entry.hash);
    }
  }
}

// On the read lane: the engine thread waits for no file.
void Scrubber::remember() {
  unmarked_bytes_ = 0;
  if (mark_path_.empty()) return;
  const Ticket ticket =
      context_.device.run_host(HostLane::kRead, [path = mark_path_, mark = mark_]() -> Status {
        return write_scrub_mark(path, mark);
      });
  // A mark that cannot be written costs the repetition of what it would have said.
  context_.tickets.on(ticket, [](const Status&) {});
}

void Scrubber::close() {
  if (rate_ == 0 || context_.disk == nullptr || !context_.writable) return;
  rate_ = 0;
  if (slice_ != nullptr) slice_->stop = true;
  if (bytes_ > 0) remember();
}

void Scrubber::add_to(BlockCacheStats& stats) const {
  stats.scrubbed_blocks = blocks_;
  stats.scrubbed_bytes = bytes_;
  stats.scrub_damaged = damaged_;
  stats.scrub_passes = mark_.passes;
  stats.last_scrub_unix_us = mark_.last_ended_unix_us;
}

}  // namespace ember
