// RAM plan: how one number, --ram-bytes, is shared out. Pure.
//
// Journey    options -> [ram_plan] -> device_pool, host_tier, disk_tier
// Invariant  the shares add up to the number (or the plan is refused with the least that would do)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/kv_layout.h"

namespace ember {

struct RamPlan {
  uint64_t total_bytes = 0;
  uint32_t device_slots = 0;  // blocks in the CPU device's arena
  uint32_t host_slots = 0;    // blocks in the host slab
  uint64_t device_bytes = 0;
  uint64_t host_bytes = 0;
  uint64_t staging_bytes = 0;  // coded groups on their way to or from the disk
  uint64_t memtable_bytes = 0;
  uint64_t block_cache_bytes = 0;  // RocksDB's, metadata only
  uint64_t index_bytes = 0;
  // Rows of the table that is printed at start: name, bytes.
  std::vector<std::pair<std::string, uint64_t>> rows() const;
};

// `request_tokens`: the longest request that must fit (device slots for it and one block more).
// Errors: kInvalidArgument with the least --ram-bytes that would do.
Result<RamPlan> plan_ram(uint64_t ram_bytes, const KvLayout& layout, uint64_t request_tokens);

// A quarter of the machine's memory (of the cgroup's limit where that is smaller).
uint64_t default_ram_bytes();
// The smaller of 20 GiB and half of the space that is free or taken by the store at `path`. A store
// that is there gets at least what it holds: on a full disk it is still opened, for reading.
// Errors: kCapacity naming `path` when there is no store and no room for a new one.
Result<uint64_t> default_disk_bytes(const std::string& path);
// The same from its parts; `held_bytes`: of the store that is there, nothing: there is none.
Result<uint64_t> share_of_disk(const std::string& path, uint64_t free_bytes,
                               std::optional<uint64_t> held_bytes);

}  // namespace ember
