// Making room on the disk: which blocks go, and the tier's slices of reclaiming.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "store/cache/offload_executor.h"

namespace ember {
namespace {

// Of the tier, erased together.
constexpr uint64_t kEvictionShare = 128;
// Of one block that does not fit: then any epoch with something dead will do.
constexpr uint32_t kPatientRounds = 3;
// Of a record's metadata, beside its payload.
constexpr uint64_t kRecordOverheadBytes = 4096;
constexpr size_t kTrimShare = 64;  // of the entries, that go before there is trimming again
constexpr size_t kTrimmedAtOnce = 256, kAgedAtOnce = 256;  // blocks, at one visit
constexpr int64_t kAgingPauseUs = 60'000'000;

}  // namespace

void OffloadExecutor::add_foreign(std::span<const ForeignRecord> records) {
  for (const ForeignRecord& record : records) {
    foreign_.push_back(record);
    foreign_hashes_.insert(record.hash);
  }
  foreign_sorted_ = foreign_sorted_ && records.empty();
}

std::optional<ForeignRecord> OffloadExecutor::take_foreign() {
  if (!std::exchange(foreign_sorted_, true)) {
    std::sort(foreign_.begin(), foreign_.end(), [](const auto& a, const auto& b) {
      return a.position < b.position;
    });
  }
  while (!foreign_.empty()) {
    const ForeignRecord record = foreign_.back();
    foreign_.pop_back();
    if (foreign_hashes_.erase(record.hash) > 0) return record;
  }
  return std::nullopt;
}

void OffloadExecutor::add_victim(Victims& victims, const BlockLedger::DiskVictim& victim) {
  if (victim.tail) {
    context_.tails.erase(victim.hash);
    victims.tails.push_back(victim.hash);
    return;
  }
  victims.blocks.push_back({victim.hash, 0, victim.stored_bytes});
  victims.bytes += victim.stored_bytes;
}

// False: there is nothing left that may go.
bool OffloadExecutor::add_victim(Victims& victims) {
  if (const std::optional<ForeignRecord> evicted = take_evicted()) {  // and counted already
    victims.blocks.push_back(*evicted);
    victims.bytes += evicted->stored_bytes;
    return true;
  }
  if (const std::optional<ForeignRecord> foreign = take_foreign()) {
    victims.blocks.push_back(*foreign);
    victims.bytes += foreign->stored_bytes;
    ++context_.counters.evicted_blocks;
    return true;
  }
  const std::optional<BlockLedger::DiskVictim> victim = context_.ledger.take_disk_victim();
  if (victim) add_victim(victims, *victim);
  return victim.has_value();
}

// Erases victims and asks the tier for room. False: there is nothing left that may go.
bool OffloadExecutor::make_room(OffloadJob& job) {
  if (context_.loading && !job.is_tail()) {
    job.not_before_us = context_.clock.now_us() + context_.tuning.retry_us;
    return !closing_;
  }
  if (++job.evictions > context_.tuning.eviction_rounds) return false;
  if (job.is_tail()) return drop_oldest_tail();
  context_.ledger.disk_is_full();

  RoomWanted room;
  room.needed = job.coded.record.stored_bytes() + kRecordOverheadBytes;
  room.wanted = std::max(room.needed * 2, context_.disk_limit_bytes / kEvictionShare)
                << (job.evictions - 1);
  room.patient = job.evictions <= kPatientRounds;
  const bool planned = foreign_hashes_.empty() && !context_.ledger.has_stale_records();
  if (!planned || !room.patient) return evict_in_order(room);
  survey_epochs(room);
  return true;
}

// Blocks that no match can reach go first, and then the first leaves, wherever they lie.
bool OffloadExecutor::evict_in_order(const RoomWanted& room) {
  const bool cheap = room.patient && context_.disk->next_dead_share() >= kCheapDeadShare;
  Victims victims;
  while (!cheap && victims.bytes < room.wanted && add_victim(victims)) {
  }
  if (victims.empty() && !cheap) return false;
  victims.patient = room.patient;
  erase_victims(std::move(victims), room.needed);
  return true;
}

void OffloadExecutor::erase_victims(Victims victims, uint64_t needed) {
  DiskTier* disk = context_.disk;
  Conversations* conversations = context_.conversations;
  struct Outcome {
    size_t erased = 0;  // of the blocks
    bool more = false;
  };
  const auto outcome = std::make_shared<Outcome>();
  const auto given = std::make_shared<const Victims>(std::move(victims));
  on_write_lane(
      [disk, conversations, given, needed, outcome]() -> Status {
        for (; outcome->erased < given->blocks.size(); ++outcome->erased) {
          EMBER_TRY(disk->erase(given->blocks[outcome->erased].hash));
        }
        if (conversations != nullptr) {
          for (const BlockHash& hash : given->tails) EMBER_TRY(conversations->erase_tail(hash));
        }
        if (needed == 0) return {};
        if (given->patient && disk->next_dead_share() < kCheapDeadShare) return {};
        // Whether it made enough shows when the block is put again.
        const Result<bool> more = disk->make_room_slice(needed);
        outcome->more = more.ok() && *more;
        return {};
      },
      [this, given, needed, outcome](const Status& status) {
        if (outcome->more) reclaim_needed_ = needed;
        if (status.ok()) return;
        remember_evicted(std::span(given->blocks).subspan(outcome->erased), true);
        doomed_tails_.insert(doomed_tails_.end(), given->tails.begin(), given->tails.end());
      });
}

// The next slice of the room that was asked for.
void OffloadExecutor::reclaim() {
  DiskTier* disk = context_.disk;
  const uint64_t needed = reclaim_needed_;
  const auto more = std::make_shared<bool>(false);
  on_write_lane(
      [disk, needed, more]() -> Status {
        EMBER_ASSIGN(*more, disk->make_room_slice(needed));
        return {};
      },
      [this, more](const Status&) {
        if (!*more) reclaim_needed_ = 0;
      });
}

// Nothing is due on the write lane.
void OffloadExecutor::use_quiet_lane() {
  if (!context_.loading && (trim_index() || drop_aged())) return;
  if (upkeep_due_ && queue_.empty()) upkeep();
}

void OffloadExecutor::upkeep() {
  DiskTier* disk = context_.disk;
  const auto more = std::make_shared<bool>(false);
  on_write_lane(
      [disk, more]() -> Status {
        EMBER_ASSIGN(*more, disk->upkeep());
        return {};
      },
      [this, more](const Status&) { upkeep_due_ = *more; });
}

// The index may not outgrow its share of RAM: the oldest leaves leave index and disk. Its memory is
// reused, not given back, so from the first time on the number of entries is the measure.
bool OffloadExecutor::trim_index() {
  const uint64_t limit = context_.limits.index_bytes;
  // What waits in the queue must find its parents still stored.
  if (limit == 0 || !queue_.empty()) return false;
  const size_t entries = context_.ledger.index().size();
  // Tables double when they grow, so not quite up to the share.
  const uint64_t most_bytes = limit / 3 * 2;
  const uint64_t bytes = most_indexed_ == 0 ? context_.ledger.memory_bytes() : 0;
  if (bytes > most_bytes) {
    // After an opening there may be many times more than that.
    const double share = static_cast<double>(most_bytes) / static_cast<double>(bytes);
    most_indexed_ = std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(entries)));
  }
  if (most_indexed_ == 0 || (entries <= most_indexed_ && !trimming_)) return false;
  const size_t target = most_indexed_ - most_indexed_ / kTrimShare;
  trimming_ = entries > target;
  if (!trimming_) return false;
  const size_t wanted = std::min(entries - target, kTrimmedAtOnce);
  Victims victims;
  while (victims.blocks.size() + victims.tails.size() < wanted && add_victim(victims)) {
  }
  context_.counters.index_evictions += victims.blocks.size() + victims.tails.size();
  trimming_ = !victims.empty();
  if (!trimming_) return false;
  erase_victims(std::move(victims), 0);
  return true;
}

// Leaves that nobody has used for the maximum age go, oldest first, a bounded number at a time.
bool OffloadExecutor::drop_aged() {
  const int64_t now = context_.clock.now_us();
  if (context_.limits.max_age_us == 0 || now < next_aging_us_) return false;
  const std::vector<BlockLedger::DiskVictim> aged = context_.ledger.take_aged_victims(
      context_.clock.unix_us() - context_.limits.max_age_us, kAgedAtOnce);
  if (aged.empty()) {
    next_aging_us_ = now + std::min(kAgingPauseUs, context_.limits.max_age_us / 8);
    return false;
  }
  Victims victims;
  add_evicted(victims);
  for (const BlockLedger::DiskVictim& victim : aged) add_victim(victims, victim);
  context_.counters.aged_blocks += aged.size();
  erase_victims(std::move(victims), 0);
  return true;
}

// The index has forgotten them, so nothing else would ever erase them. Children before parents;
// what was to be erased and could not be goes before all that was evicted since.
void OffloadExecutor::remember_evicted(std::span<const ForeignRecord> blocks, bool go_first) {
  std::erase_if(evicted_, [&](const ForeignRecord& block) {  // written anew since
    return !foreign_hashes_.contains(block.hash);
  });
  evicted_.insert(go_first ? evicted_.begin() : evicted_.end(), blocks.begin(), blocks.end());
  for (const ForeignRecord& block : blocks) foreign_hashes_.insert(block.hash);
}

// A stale record may be a child of what is evicted next, or the parent of what was evicted last.
std::optional<ForeignRecord> OffloadExecutor::take_evicted() {
  for (const BlockHash& hash : context_.ledger.take_stale_records()) {
    const ForeignRecord stale{hash, 0, 0};
    remember_evicted(std::span(&stale, 1), false);
  }
  while (!evicted_.empty()) {
    const ForeignRecord block = evicted_.front();
    evicted_.pop_front();
    if (foreign_hashes_.erase(block.hash) > 0) return block;
  }
  return std::nullopt;
}

void OffloadExecutor::add_evicted(Victims& victims) {
  while (const std::optional<ForeignRecord> block = take_evicted()) {
    victims.blocks.push_back(*block);
  }
}

bool OffloadExecutor::drop_oldest_tail() {
  const std::optional<BlockHash> oldest = context_.tails.oldest();
  if (!oldest) return false;
  forget_tail(*oldest);
  return true;
}

}  // namespace ember
