// Shares of the one number for disk.
#include "store/disk_plan.h"

#include <algorithm>

#include "base/bytes.h"

namespace ember {

Result<DiskPlan> plan_disk(uint64_t disk_bytes) {
  if (disk_bytes < kLeastDiskBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 "disk_bytes: found " + std::to_string(disk_bytes) + " (" +
                     human_bytes(disk_bytes) + "), expected at least " +
                     std::to_string(kLeastDiskBytes) + " (" + human_bytes(kLeastDiskBytes) + ")"};
  }
  DiskPlan plan;
  plan.conversations_bytes =
      std::min(std::max(disk_bytes / 16, kLeastConversationsBytes), disk_bytes / 4);
  plan.tails_bytes = plan.conversations_bytes / 4;
  plan.quarantine_bytes = std::clamp(disk_bytes / 64, uint64_t{1} << 20, uint64_t{64} << 20);
  plan.shadows_bytes =
      std::clamp(disk_bytes / 128, uint64_t{256} << 10, uint64_t{64} << 20);
  plan.blocks_bytes = disk_bytes - plan.conversations_bytes - plan.quarantine_bytes -
                      plan.shadows_bytes - kStoreFilesBytes;
  return plan;
}

}  // namespace ember
