// Offload plan: what the offload queue does next: which blocks are copied down, which are coded and
// written, which are hopeless, and whether it is time to flush. Pure.
//
// Journey    block_cache -> [offload_plan] -> offload_executor
// Invariant  a child is never written before its parent; no block waits for another that is no
//            ancestor of it; a write is flushed at the latest when the oldest is flush_age old
// Threads    any
// Not here   doing it (store/cache/offload_executor.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ember {

enum class OffloadStage : uint8_t {
  kQueued,   // its only copy that we hold is on the device
  kCopying,  // on its way to a host slot
  kHeld,     // in a host slot, to be coded and written
  kCoding,   // handed to a worker
  kWriting,  // handed to the write lane
};

inline constexpr size_t kNoItem = static_cast<size_t>(-1);

struct OffloadItem {
  OffloadStage stage = OffloadStage::kQueued;
  bool parent_stored = true;     // on disk, or it has none
  size_t parent_item = kNoItem;  // where its parent is, earlier in this queue
  int64_t not_before_us = 0;     // pause after a refused write
  bool coded = true;             // its payloads wait in RAM
};

struct OffloadView {
  std::span<const OffloadItem> items;  // in the order of their commits
  int64_t now_us = 0;
  size_t host_slots = 0;   // that offload may hold, those it holds included
  size_t write_batch = 8;  // blocks of one write task
  size_t coded_blocks = 8;  // that may be coded and not yet written: bounds the staging memory
  bool may_write = true;    // the day's budget of bytes is not used up
  bool lane_idle = true;   // no write, eviction or flush of ours is under way
  bool closing = false;    // no pause is worth waiting for
  // Accepted by the disk and not yet flushed.
  size_t unflushed = 0;
  int64_t oldest_unflushed_us = 0;
  int64_t flush_age_us = 0;
  bool sync_waits = false;     // someone waits, and all that it waits for is accepted
  int64_t turn_ended_us = -1;  // -1: no turn has ended since the last flush
};

struct OffloadStep {
  std::vector<size_t> drop;   // parents failed: these can never be written
  std::vector<size_t> copy;   // queued blocks to copy into host slots, in order
  bool must_copy = false;     // all that is in host slots waits for the first of these
  std::vector<size_t> code;   // items to code, in order
  std::vector<size_t> write;  // items to write as one task, in this order
  bool flush = false;
};

// How long nothing must run after a turn's end before its blocks are flushed unasked.
inline constexpr int64_t kIdleFlushUs = 200'000;

OffloadStep plan_offload(const OffloadView& view);

}  // namespace ember
