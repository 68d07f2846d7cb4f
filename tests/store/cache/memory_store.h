// A disk tier and a conversations' database in memory, whose weather the test makes.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "store/conversations.h"
#include "store/disk_tier.h"

namespace ember::testing {

// What is "on the disk": outlives the tiers that are opened on it.
struct MemoryStore {
  struct Block {
    BlockRecord record;
    TouchRecord touch;
    std::vector<std::string> payloads;
    bool flushed = false;
  };
  Mutex mutex;
  std::map<BlockHash, Block> blocks;
  std::map<BlockHash, Block> tails;
  uint64_t limit_bytes = 64u << 20;
  // Not 0: blocks lie in epochs of so many, and what is erased takes room until its epoch goes.
  size_t epoch_blocks = 0;
  std::map<uint32_t, uint64_t> epoch_bytes;  // put into each, live or not
  uint64_t rewritten_bytes = 0;              // by epochs that went
  uint64_t puts = 0;  // of blocks
  std::vector<BlockHash> lost;  // what take_lost() tells
  uint64_t flushes = 0;
  uint64_t touches = 0;
  uint64_t order_faults = 0;   // a child before its parent, or a parent erased before its child
  // The weather. Called under no lock, by any thread.
  std::function<Status(const BlockHash&)> before_put;
  std::function<Status(const BlockHash&, uint32_t group)> before_read;
  std::function<Status()> before_flush;
  std::function<Status()> before_erase;  // of a block
  std::function<Status()> before_list_tails;
  std::function<Status()> before_scan;
  // Lies, for tests of the tests.
  std::function<bool()> swallow_flush;    // reports it, and nothing was flushed
  std::function<void(Bytes)> after_read;  // changes what was proven
  std::atomic<uint64_t> reads{0};

  // What puts have brought, as bytes written to a drive.
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> lost_blocks{0};

  uint64_t stored_bytes();
  uint64_t taken_bytes();  // what is dead in epochs counted
  // As a full drive would: the block's groups are gone, its record stays as a hole.
  void lose(const BlockHash& hash);
  // What a power cut leaves.
  void lose_unflushed();
  // Changes one byte of a block's payload.
  void corrupt(const BlockHash& hash, uint32_t group);
};

std::unique_ptr<DiskTier> open_memory_disk(MemoryStore& store);
std::unique_ptr<Conversations> open_memory_conversations(MemoryStore& store);

}  // namespace ember::testing
