// Proving one block after the other.
#include "tools/commands/look/block_proof.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "prefix_index/block_hash.h"

namespace ember {
namespace {

constexpr int64_t kPaceSliceUs = 100'000;

}  // namespace

// What no disk has yet has no epoch either, and no stored bytes.
bool is_hole(const BlockRecord& record) {
  return record.epoch == 0 && !record.tail && record.stored_bytes() > 0;
}

BlockProof::BlockProof(StoreReader& reader, CommandIo& io, uint64_t bytes_per_second)
    : reader_(reader),
      io_(io),
      bytes_per_second_(bytes_per_second),
      began_us_(system_clock().now_us()) {}

Status BlockProof::prove(const BlockRecord& record) {
  const BlockHasher hasher(reader_.secret(), record.name_space, record.scope);
  Status proven;
  if (hasher.next(record.parent, record.tokens) != record.hash) {
    proven = Error{ErrorCode::kCorruption, "its hash is not that of its parent and tokens"};
  }
  if (is_hole(record)) return proven;
  for (uint32_t group = 0; group < record.groups.size(); ++group) {
    ++groups_;
    raw_.resize(record.groups[group].raw_bytes);
    raw_bytes_ += raw_.size();
    const Status status =
        reader_.read_group(record, group, std::as_writable_bytes(std::span<char>(raw_)));
    if (status.ok()) continue;
    if (status.error().code == ErrorCode::kBusy || has_changed(record)) {
      return {ErrorCode::kBusy, "it changed while it was read"};
    }
    if (!proven.ok()) continue;
    proven = Error{status.error().code,
                   "group " + std::to_string(group) + ": " + status.error().message};
  }
  keep_pace();
  return proven;
}

// Beside a running process a block may go, or be put elsewhere, while it is read.
bool BlockProof::has_changed(const BlockRecord& record) {
  if (record.tail) {
    const auto found = reader_.conversations().read_tail_as_found(record.hash);
    return found.ok() && !*found;
  }
  const Result<std::optional<BlockRecord>> now = reader_.record(record.hash);
  return now.ok() && (!*now || (*now)->epoch != record.epoch);
}

void BlockProof::keep_pace() const {
  if (bytes_per_second_ == 0) return;
  const double due_us =
      static_cast<double>(raw_bytes_) * 1e6 / static_cast<double>(bytes_per_second_);
  const int64_t until_us = began_us_ + static_cast<int64_t>(due_us);
  while (!io_.stopped() && system_clock().now_us() < until_us) {
    const int64_t left_us = until_us - system_clock().now_us();
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(left_us, kPaceSliceUs)));
  }
}

}  // namespace ember
