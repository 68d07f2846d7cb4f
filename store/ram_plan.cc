// Shares of the one number for RAM, and the defaults of both numbers.
#include "store/ram_plan.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include "base/bytes.h"
#include "store/disk_plan.h"

namespace ember {
namespace {

constexpr uint64_t kMiB = 1u << 20;

// Each share is its least plus a part of what the least of all leaves over, up to a cap.
constexpr uint64_t kLeastMemtable = 8 * kMiB;
constexpr uint64_t kLeastBlockCache = 1 * kMiB;
constexpr uint64_t kLeastIndex = 1 * kMiB;
constexpr uint64_t kLeastStaging = 1 * kMiB;
constexpr uint64_t kMostMemtable = 768 * kMiB;
constexpr uint64_t kMostBlockCache = 64 * kMiB;
constexpr uint64_t kMostIndex = 1024 * kMiB;
constexpr uint64_t kMostStaging = 256 * kMiB;
constexpr uint64_t kLeastHostSlots = 4;

uint64_t share(uint64_t least, uint64_t surplus, uint64_t divisor, uint64_t most) {
  return std::max(least, std::min(least + surplus / divisor, most));
}

// The machine's memory, or the cgroup's limit where that is smaller.
uint64_t machine_ram_bytes() {
  uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    uint64_t limit = 0;
    if (in >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

// Of the files below `folder`; what cannot be read counts as nothing.
uint64_t bytes_below(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    const uint64_t size = it->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace

std::vector<std::pair<std::string, uint64_t>> RamPlan::rows() const {
  return {{"device arena", device_bytes},     {"host slots", host_bytes},
          {"staging", staging_bytes},         {"memtables", memtable_bytes},
          {"block cache", block_cache_bytes}, {"index", index_bytes}};
}

Result<RamPlan> plan_ram(uint64_t ram_bytes, const KvLayout& layout, uint64_t request_tokens) {
  const uint64_t block = layout.block_bytes();
  const uint64_t span = layout.block_tokens();
  const uint64_t device_slots = std::max<uint64_t>(1, (request_tokens + span - 1) / span) + 1;
  const uint64_t least_staging = std::max(kLeastStaging, 2 * block);
  const uint64_t least = kLeastMemtable + kLeastBlockCache + kLeastIndex + least_staging +
                         (device_slots + kLeastHostSlots) * block;
  if (ram_bytes < least) {
    return Error{ErrorCode::kInvalidArgument,
                 "ram_bytes: found " + std::to_string(ram_bytes) + " (" + human_bytes(ram_bytes) +
                     "), expected at least " + std::to_string(least) + " (" + human_bytes(least) +
                     ") for requests of " + std::to_string(request_tokens) + " tokens"};
  }
  const uint64_t surplus = ram_bytes - least;
  RamPlan plan;
  plan.total_bytes = ram_bytes;
  plan.memtable_bytes = share(kLeastMemtable, surplus, 8, kMostMemtable);
  plan.block_cache_bytes = share(kLeastBlockCache, surplus, 64, kMostBlockCache);
  plan.index_bytes = share(kLeastIndex, surplus, 32, kMostIndex);
  plan.staging_bytes = share(least_staging, surplus, 32, kMostStaging);
  const uint64_t blocks = (ram_bytes - plan.memtable_bytes - plan.block_cache_bytes -
                           plan.index_bytes - plan.staging_bytes) /
                          block;
  // Half of the blocks beyond the least of both go to each; a slot number is a positive int32.
  const uint64_t spare = blocks - device_slots - kLeastHostSlots;
  constexpr uint64_t kMostSlots = 0x7fffffff;
  plan.device_slots = static_cast<uint32_t>(std::min(device_slots + spare / 2, kMostSlots));
  plan.host_slots =
      static_cast<uint32_t>(std::min(kLeastHostSlots + spare - spare / 2, kMostSlots));
  plan.device_bytes = plan.device_slots * block;
  plan.host_bytes = plan.host_slots * block;
  // What is no whole block is room for coded groups.
  plan.staging_bytes = ram_bytes - plan.memtable_bytes - plan.block_cache_bytes - plan.index_bytes -
                       plan.device_bytes - plan.host_bytes;
  return plan;
}

uint64_t default_ram_bytes() { return machine_ram_bytes() / 4; }

Result<uint64_t> share_of_disk(const std::string& path, uint64_t free_bytes,
                               std::optional<uint64_t> held_bytes) {
  constexpr uint64_t kMost = uint64_t{20} << 30;
  if (!held_bytes && free_bytes < kLeastDiskBytes) {
    return Error{ErrorCode::kCapacity, path + ": a new store cannot be made there: found " +
                                           human_bytes(free_bytes) + " free, expected at least " +
                                           human_bytes(kLeastDiskBytes)};
  }
  const uint64_t held = held_bytes.value_or(0);
  const uint64_t half = std::min(kMost, (free_bytes + held) / 2);
  return std::max({half, std::min(held, kMost), kLeastDiskBytes});
}

Result<uint64_t> default_disk_bytes(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path existing = std::filesystem::absolute(path, ignored);
  while (!existing.empty() && !std::filesystem::exists(existing, ignored) &&
         existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  struct statvfs info {};
  uint64_t free_bytes = std::numeric_limits<uint64_t>::max() / 2;
  if (statvfs(existing.c_str(), &info) == 0) free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
  std::optional<uint64_t> held;
  if (std::filesystem::exists(std::filesystem::path(path) / "IDENTITY", ignored)) {
    held = bytes_below(path + "/blocks") + bytes_below(path + "/conversations");
  }
  return share_of_disk(path, free_bytes, held);
}

}  // namespace ember
