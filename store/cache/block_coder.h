// Block coder: from a slot's bytes to a record with payloads, and back with proof.
//
// Journey    host_tier -> [block_coder] -> disk_tier, and back
// Invariant  rows come back only from a record that names exactly the block that was asked for and
//            from groups whose checksum agrees; anything else is kCorruption
// Threads    any: host tasks; touches only what it is given
// Not here   the bytes of a record (store/record.h), of a payload (store/codec.h)
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/conversations.h"
#include "store/disk_tier.h"
#include "store/kv_layout.h"
#include "store/quarantine.h"
#include "store/record.h"

namespace ember {

// Everything that a record must say to be this block.
struct BlockIdentity {
  bool tail = false;
  NamespaceHash name_space;
  std::string scope;
  std::string publisher;  // who pays for it; not a part of what the block is
  BlockHash hash;
  BlockHash parent;
  uint64_t numerics_build = 0;
  uint32_t position = 0;
  std::vector<TokenId> tokens;
};

struct CodedBlock {
  BlockRecord record;
  std::vector<std::string> payloads;
};

// Codes the block in `slot`, group by group.
CodedBlock encode_block(const KvLayout& layout, const BlockIdentity& identity,
                        const std::byte* slot);

// Whether `record` is that block, in this layout (its grouping of layers may be another).
// Errors: kCorruption, with the field that differs.
Status check_record(const BlockRecord& record, const BlockIdentity& identity,
                    const KvLayout& layout);
// Whether its streams, groups and lengths fit the layout. Errors: kCorruption.
Status check_record_shape(const BlockRecord& record, const KvLayout& layout);

// What reads that did not go well came to. Threads: any.
struct ReadCounters {
  std::atomic<uint64_t> retried{0};  // failed once; the second answer counted
};

// Where a block's bytes are read from. What fails is read once more, since a drive may err once. An
// error kCorruption then means that the stored bytes are proven wrong: they are kept aside in the
// quarantine as they were found. Any other error proves nothing against them.
struct BlockReader {
  const KvLayout& layout;
  DiskTier& disk;
  Conversations* conversations = nullptr;  // for tails
  Quarantine* quarantine = nullptr;        // null: nothing is kept aside
  ReadCounters* counters = nullptr;

  // Finds the record of a full block and proves that it is that block.
  Status find_record(const BlockIdentity& identity, BlockRecord& record) const;
  // Finds the record (a tail's is given), proves it, poisons the slot and reads the first group, or
  // all of them where the record's grouping is not the layout's.
  Status read_first(const BlockIdentity& identity, BlockRecord& record, std::byte* slot) const;
  // Reads one more group.
  Status read_group(const BlockRecord& record, uint32_t group, std::byte* slot) const;
  bool same_grouping(const BlockRecord& record) const;

 private:
  Status find_record_once(const BlockIdentity& identity, BlockRecord& record) const;
  Status read_group_once(const BlockRecord& record, uint32_t group, std::byte* slot) const;
  void count_retry() const;
  void set_aside(const BlockHash& hash, uint32_t position, bool tail, const Error& why) const;
};

}  // namespace ember
