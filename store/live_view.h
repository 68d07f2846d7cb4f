// Live view: what a running cache knows of its blocks beyond their records, and the parts below.
//
// Journey    block_cache, offload -> [live_view] -> who inspects a store through its holder
// Owns       nothing; lives as long as its cache
// Invariant  looking changes nothing; each call looks at so many blocks as it was asked for, never
//            at all of them
// Threads    engine thread only, but for parts(), which any thread may ask for and read from as
//            each part says
// Not here   walking a store's records (store/disk_tier.h)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/journey.h"
#include "store/conversations.h"
#include "store/disk_tier.h"
#include "store/quarantine.h"
#include "store/record.h"
#include "store/store_directory.h"

namespace ember {

class LiveView {
 public:
  virtual ~LiveView() = default;

  // Null where there is none; the same from opening on.
  struct Parts {
    StoreDirectory* directory = nullptr;
    DiskTier* disk = nullptr;
    Conversations* conversations = nullptr;
    Quarantine* quarantine = nullptr;
  };
  virtual Parts parts() const = 0;

  struct Place {
    bool known = false;  // in the index; all else is empty where it is not
    std::array<bool, kTierCount> in{};
    uint32_t users = 0;                // requests and transfers that name it now
    int64_t pinned_until_unix_us = 0;  // 0: not pinned
    bool durable = false;              // on disk, and flushed
    bool damaged = false;
    TouchRecord touch;  // with the uses that the disk has not heard of yet
  };
  // Cost: linear in `hashes` and in the blocks that wait for a flush.
  virtual std::vector<Place> places(std::span<const BlockHash> hashes) const = 0;

  // Blocks in RAM that the disk has not accepted, slot by slot; those of `record` which only an
  // offload makes are empty: codec, checksums, stored bytes.
  struct Unstored {
    BlockRecord record;
    Place place;
  };
  struct UnstoredPage {
    std::vector<Unstored> blocks;
    uint32_t next = 0;  // slot for the next page
    bool done = false;
  };
  // Looks at `slots` slots from `from` on.
  virtual UnstoredPage unstored(uint32_t from, uint32_t slots) const = 0;
  // One such block; nothing where there is none.
  virtual std::optional<Unstored> find_unstored(const BlockHash& hash) const = 0;
  // One group of such a block, packed. Errors: kBusy where it is on the device only, for the
  // offload will bring it down; kInvalidArgument where RAM has it no more.
  virtual Status read_unstored(const BlockHash& hash, uint32_t group, Bytes raw) const = 0;
};

}  // namespace ember
