// Shares of the one number for disk.
#include "store/disk_plan.h"

#include <algorithm>

#include "base/bytes.h"

namespace ember {
namespace {

constexpr uint64_t kKiB = 1u << 10;
constexpr uint64_t kMiB = 1u << 20;

}  // namespace

Result<DiskPlan> plan_disk(uint64_t disk_bytes, uint64_t access_log_bytes) {
  if (disk_bytes < kLeastDiskBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 "disk_bytes: found " + std::to_string(disk_bytes) + " (" +
                     human_bytes(disk_bytes) + "), expected at least " +
                     std::to_string(kLeastDiskBytes) + " (" + human_bytes(kLeastDiskBytes) + ")"};
  }
  if (access_log_bytes > disk_bytes / 4) {
    return Error{ErrorCode::kInvalidArgument,
                 "access_log_bytes: found " + std::to_string(access_log_bytes) +
                     ", expected at most " + std::to_string(disk_bytes / 4) +
                     ", a quarter of disk_bytes"};
  }
  DiskPlan plan;
  plan.conversations_bytes =
      std::min(std::max(disk_bytes / 16, kLeastConversationsBytes), disk_bytes / 4);
  plan.tails_bytes = plan.conversations_bytes / 4;
  plan.quarantine_bytes = std::clamp(disk_bytes / 64, kMiB, 64 * kMiB);
  plan.access_log_bytes = access_log_bytes;
  plan.shadows_bytes = std::clamp(disk_bytes / 128, 256 * kKiB, 64 * kMiB);
  plan.namespaces_bytes = std::clamp(disk_bytes / 64, kMiB, 32 * kMiB);
  const uint64_t both = disk_bytes - plan.conversations_bytes - plan.quarantine_bytes -
                        plan.access_log_bytes - plan.shadows_bytes - plan.namespaces_bytes -
                        kStoreFilesBytes;
  plan.ballast_bytes = plan_epochs(both).ballast_bytes;
  plan.blocks_bytes = both - plan.ballast_bytes;
  return plan;
}

EpochSizes plan_epochs(uint64_t blocks_bytes) {
  EpochSizes sizes;
  sizes.epoch_bytes = std::clamp(blocks_bytes / 128, kMiB, 256 * kMiB);
  sizes.margin_bytes = std::clamp(blocks_bytes / 32, 256 * kKiB, 16 * kMiB);
  sizes.ballast_bytes = sizes.epoch_bytes + sizes.margin_bytes;
  return sizes;
}

}  // namespace ember
