// Live edits: changes to the store of a running cache that its user asks for: what is to go, what
// comes from elsewhere, what was proven wrong, work that wants the writing lane for itself.
//
// Journey    store_editor, record_intake -> [live_edits] -> block_ledger, disk_tier, conversations
// Owns       nothing; lives as long as its cache
// Invariant  a block that a request or a transfer uses, that is pinned, or that something else
//            hangs on, stays in index and store; all else leaves the index at once and the store
//            with the ticket. What is committed meanwhile is written behind that
// Threads    engine thread only
// Not here   what is to go (tools/commands), how it is asked for (store/store_editor.h)
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/device.h"
#include "prefix_index/block_hash.h"

namespace ember {

// A block or tail that is to go.
struct EraseItem {
  BlockHash hash;
  uint64_t stored_bytes = 0;
  uint32_t position = 0;
  bool tail = false;
  // It goes because nothing reaches it: not if something does by now.
  bool unreachable = false;
};

struct Erased {
  uint64_t blocks = 0;
  uint64_t tails = 0;
  uint64_t stored_bytes = 0;
  // What stayed:
  uint64_t pinned = 0;
  uint64_t in_use = 0;  // by a request, or on its way between tiers
  uint64_t needed = 0;  // something hangs on it that stays; or it can be reached by now

  uint64_t stayed() const { return pinned + in_use + needed; }
  void add(const Erased& other) {
    blocks += other.blocks;
    tails += other.tails;
    stored_bytes += other.stored_bytes;
    pinned += other.pinned;
    in_use += other.in_use;
    needed += other.needed;
  }
};

struct IncomingBatch;  // store/record_intake.h

class LiveEdits {
 public:
  virtual ~LiveEdits() = default;

  // Children before their parents. Says at once what goes; the ticket completes when the store has
  // erased that, or has failed to, and then erases it before anything else. It is gone for good
  // after the next flush. Errors (of the ticket): kBusy while the store is read after opening,
  // kUnsupported without a store that can be written (then nothing goes); kIo, kCapacity.
  virtual Ticket erase(std::span<const EraseItem> items, Erased& erased) = 0;
  // The stored bytes of this block were proven wrong: as if the scrubber had found it.
  virtual void proven_wrong(const BlockHash& hash) = 0;
  // Blocks and tails that others computed and that are proven, parents before children: the store
  // takes them, then the index, all before the ticket completes; what is known stays as it is.
  // Errors (of the ticket): as erase; kBusy where a block hangs on one that no disk has yet (none
  // is taken then), kCapacity (nothing gives way). What `batch` says was written is there.
  virtual Ticket take_in(std::shared_ptr<IncomingBatch> batch) = 0;
  // Runs `work` on the write lane, in its turn: nothing else of the cache writes meanwhile. Slices
  // of seconds at most: the offload waits. Whoever wants to know of its end has it say so.
  virtual void on_write_lane(HostTask work) = 0;
  // What was accepted and erased so far survives a crash once the ticket has completed.
  virtual Ticket flush() = 0;
};

}  // namespace ember
