// Record harvest: what the index needs of very many records, and the order in which they enter it.
//
// Journey    disk_tier -> [record_harvest] -> reopening -> block_ledger
// Owns       72 bytes and the token ids for each record that it was given
// Invariant  a number names one record, also after another harvest was appended; in an order
//            parents come before children, and blocks without a branch one after another
// Threads    one at a time while it is given records; then any may read
// Not here   whether a record may be believed (store/cache/reopening.h)
//
// Records come in the order of their hashes, which is none. In the order of their chains each finds
// its parent where it has just been put, and a run of blocks is made room for at once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "prefix_index/block_hash.h"
#include "prefix_index/token.h"
#include "store/disk_tier.h"

namespace ember {

class RecordHarvest {
 public:
  struct Row {
    BlockHash hash;
    BlockHash parent;
    uint64_t numerics_build = 0;
    int64_t last_use_unix_us = 0;
    uint32_t hits = 0;
    uint32_t position = 0;
    uint32_t epoch = 0;
    uint32_t stored_bytes = 0;
    uint32_t scope = 0;  // a name's number
    uint32_t publisher = 0;
    TouchRecord touch() const { return {last_use_unix_us, hits}; }
  };
  static_assert(sizeof(Row) == 72, "a million records take a million of these");

  explicit RecordHarvest(uint32_t block_tokens) : block_tokens_(block_tokens) {}

  // A record of a full block.
  void add(const BlockRecord& record, const TouchRecord& touch);
  // Takes over all that another one holds, which is empty then.
  void append(RecordHarvest&& other);

  size_t size() const { return size_; }
  uint32_t block_tokens() const { return block_tokens_; }
  const Row& row(uint32_t number) const { return chunks_[number / kChunk].rows[number % kChunk]; }
  TokenSpan tokens(uint32_t number) const {
    const TokenId* first = chunks_[number / kChunk].tokens.data();
    return {first + size_t{number % kChunk} * block_tokens_, block_tokens_};
  }
  const std::string& name(uint32_t number) const { return names_[number]; }
  size_t names() const { return names_.size(); }
  // Asks for the memory of a record that will be needed soon.
  void prefetch(uint32_t number) const;

  static constexpr uint32_t kNone = 0xffffffffu;
  struct Place {
    uint32_t number = 0;
    uint32_t parent = kNone;  // the number of the record before it; kNone: not here
    uint32_t run = 0;  // blocks that follow it in the order, each the only child of the one before
    bool begins_run = false;
  };
  struct Order {
    std::vector<Place> places;
    size_t leaves = 0;
  };
  // Whether two hashes are really the same is told by what enters: a parent is known here by its
  // hash's first eight bytes.
  Order parents_first() const;

  // Numbers are below this; those of a chunk that is not full are not all taken.
  uint32_t end() const { return static_cast<uint32_t>(chunks_.size()) * kChunk; }
  bool has(uint32_t number) const { return number % kChunk < chunks_[number / kChunk].rows.size(); }

 private:
  static constexpr uint32_t kChunk = 4096;
  struct Chunk {
    std::vector<Row> rows;
    std::vector<TokenId> tokens;
  };
  uint32_t name_number(const std::string& name);

  uint32_t block_tokens_;
  std::vector<Chunk> chunks_;
  size_t size_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> name_numbers_;
  uint32_t last_name_ = 0;       // mostly the next record's too
  uint32_t empty_name_ = kNone;  // that of no publisher
};

}  // namespace ember
