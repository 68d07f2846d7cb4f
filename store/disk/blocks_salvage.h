// Blocks' salvage: what is left of a broken database of blocks, proven and put into a new one.
//
// Journey    <store>/blocks (broken) -> [blocks_salvage] -> a new folder of blocks
// Owns       the rows of all records in RAM, about 1 KB a block, and one blob file at a time
// Invariant  the old folder is read and never written; a block is in the new one only if its record
//            follows from secret, parent and tokens and each of its groups was proven; what was
//            erased stays erased as far as the tables that say so can be read
// Threads    one
// Not here   changing places (store/disk/renewed_folder.h)
//
// Neither CURRENT nor MANIFEST nor any index is needed: rows come from the tables' blocks with
// their sequence numbers, the newest counts; groups come from the blob files with their keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "store/disk_tier.h"

namespace ember {

struct BlocksSalvaged {
  uint64_t blocks = 0;        // proven, and in the new database
  uint64_t stored_bytes = 0;  // of these
  uint64_t holes = 0;      // records without right groups, kept since saved blocks hang below them
  uint64_t lost = 0;       // the other records without right groups
  uint64_t unreadable = 0;  // rows that are no records
};

struct BlocksSalvageOptions {
  std::string from;      // the broken folder
  DiskTierOptions into;  // the new one, empty; its `set_aside` is told of what is proven wrong
  HashSecret secret{};
  std::function<bool(double done)> on_progress;  // false: stop
};

// Errors: kIo, kCapacity (there is no room for a second copy), kCancelled.
Result<BlocksSalvaged> salvage_blocks(const BlocksSalvageOptions& options);

}  // namespace ember
