// Disk plan: how one number, --disk-bytes, is shared out. Pure.
//
// Journey    options -> [disk_plan] -> disk_tier, conversations, quarantine, shadows
// Invariant  the shares add up to the number, or the plan is refused with the least that would do
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace ember {

inline constexpr uint64_t kLeastDiskBytes = uint64_t{64} << 20;
// IDENTITY and LOCK, rounded up generously to file-system blocks.
inline constexpr uint64_t kStoreFilesBytes = uint64_t{64} << 10;
inline constexpr uint64_t kLeastConversationsBytes = uint64_t{8} << 20;

struct DiskPlan {
  uint64_t blocks_bytes = 0;         // <store>/blocks: everything but what follows
  uint64_t ballast_bytes = 0;        // <store>/blocks/BALLAST: an epoch and its metadata
  uint64_t conversations_bytes = 0;  // <store>/conversations: 1/16, at least 8 MiB, at most 1/4
  uint64_t tails_bytes = 0;          // of those, what tail records may hold: a quarter
  uint64_t quarantine_bytes = 0;     // <store>/quarantine: 1/64, 1 to 64 MiB
  uint64_t access_log_bytes = 0;     // <store>/access_log: as asked for
  uint64_t shadows_bytes = 0;        // <store>/SHADOWS and its successor: 1/128, 256 KiB to 64 MiB
  uint64_t namespaces_bytes = 0;     // <store>/namespaces: 1/64, 1 to 32 MiB

  // Not shares; as in DiskTierOptions, for whoever opens the parts.
  std::optional<uint64_t> free_floor_bytes;
  uint64_t write_bytes_per_s = uint64_t{1} << 30;
};

// Errors: kInvalidArgument with the least number that would do, or the most that an access log may
// have: a quarter.
Result<DiskPlan> plan_disk(uint64_t disk_bytes, uint64_t access_log_bytes = 0);

// The sizes that follow from what blocks may take.
struct EpochSizes {
  uint64_t epoch_bytes = 0;    // an epoch is sealed before it passes this: 1/128, 1 to 256 MiB
  uint64_t margin_bytes = 0;   // kept free for manifests and option files
  uint64_t ballast_bytes = 0;  // what retiring one epoch may write: its live groups, their metadata
};
EpochSizes plan_epochs(uint64_t blocks_bytes);

}  // namespace ember
