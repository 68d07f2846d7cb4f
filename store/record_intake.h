// Record intake: how a store takes blocks, tails and conversations that another has computed.
//
// Journey    import -> [record_intake] -> disk_tier, conversations (at rest); block_cache (live)
// Invariant  what is given was proven; a block comes after its parent; what is there already stays
//            as it is
// Threads    one caller; not the engine's thread
// Not here   proving (store/transfer/transfer_reader.h), names of scopes (store/transfer/import.h)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "store/conversations.h"
#include "store/namespace_book.h"
#include "store/record.h"

namespace ember {

struct IntakeCounts {
  uint64_t blocks = 0;
  uint64_t tails = 0;
  uint64_t conversations = 0;
  uint64_t stored_bytes = 0;  // payload of blocks and tails
  void add(const BlockRecord& record) {
    ++(record.tail ? tails : blocks);
    stored_bytes += record.stored_bytes();
  }
  friend bool operator==(const IntakeCounts&, const IntakeCounts&) = default;
};

// Blocks and tails for one turn of a running cache's write lane (LiveEdits::take_in).
struct IncomingBlock {
  BlockRecord record;
  std::vector<std::string> payloads;
  bool known = false;  // was there already
};
struct IncomingBatch {
  std::vector<IncomingBlock> blocks;  // parents before children
  size_t written = 0;                 // so many of them are in the store
  size_t entered = 0;                 // and so many in the index
};

class RecordIntake {
 public:
  virtual ~RecordIntake() = default;

  // With which the store names its blocks.
  virtual const HashSecret& secret() const = 0;
  // Whether so much payload fits; makes room where only dead bytes are in the way. Errors:
  // kCapacity with what there is, kIo.
  virtual Status reserve(uint64_t stored_bytes) = 0;
  // Writes down what is not there yet.
  virtual Status put_namespace(const NamespaceHash& name, const NamespaceEntry& entry) = 0;
  // A block or a tail, its hash and parent as this store names them; one that is there already is
  // passed over. Errors: kCapacity, kIo, kBusy (what it hangs on does not come down).
  virtual Status put_block(BlockRecord record, std::vector<std::string> payloads) = 0;
  // All of a conversation, or what it has from `first_turn` on where an earlier part is there.
  // Errors: kBusy (somebody talks in it), kCapacity, kIo.
  virtual Status put_conversation(const Conversation& conversation, uint32_t first_turn) = 0;
  // What was put survives a crash from here on.
  virtual Status finish() = 0;

  // Blocks and tails; complete after finish().
  struct Taken {
    IntakeCounts fresh;
    IntakeCounts known;
  };
  virtual const Taken& taken() const = 0;
};

}  // namespace ember
