// Trace: past requests as chains of numbered blocks: what a replay goes through.
//
// Journey    public_trace, log_trace -> [trace] -> simulation, bench/replay
// Owns       for each distinct block the one before it; for each request its last block
// Invariant  a block's number is larger than that of the block before it, so a chain follows from
//            its last block: 4 bytes a block and 24 a request, however long the chains are
// Threads    any, once it is made
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefix_index/hash_buckets.h"
#include "prefix_index/stable_pool.h"

namespace ember::replay {

// A block by number: one for each pair of (block before it, id).
using BlockNumber = uint32_t;
inline constexpr BlockNumber kNoBlockNumber = ~BlockNumber{0};  // before a first block

struct Request {
  double at_s = 0;
  BlockNumber last = kNoBlockNumber;  // of its chain
  uint32_t blocks = 0;                // of its chain
  uint32_t looked_up = 0;  // the first ones: the prompt's; what comes after them was its answer
  uint32_t prompt_tokens = 0;
};

struct Trace {
  uint32_t block_tokens = 0;
  std::vector<BlockNumber> before;  // by number: the block before it
  std::vector<Request> requests;    // in order of time
  uint64_t references = 0;          // blocks that requests looked up
  uint64_t prompt_tokens = 0;
  size_t longest = 0;               // blocks of the longest request

  size_t blocks() const { return before.size(); }  // distinct ones: the footprint
  // A request's blocks, root first.
  void chain(const Request& request, std::vector<BlockNumber>& out) const {
    out.resize(request.blocks);
    BlockNumber block = request.last;
    for (size_t i = out.size(); i > 0; --i) {
      out[i - 1] = block;
      block = before[block];
    }
  }
};

// Numbers the blocks of a trace while it is read: 20 bytes a distinct block.
class BlockNumbering {
 public:
  BlockNumber number(BlockNumber before, uint64_t id) {
    for (BlockNumber at = buckets_.head(hash(before, id)); at != kNoBlockNumber;
         at = known_[at].next_in_bucket) {
      if (known_[at].before == before && known_[at].id == id) return at;
    }
    buckets_.reach(
        known_.size() + 1,
        [this](BlockNumber at) -> BlockNumber& { return known_[at].next_in_bucket; },
        [this](BlockNumber at) { return hash(known_[at].before, known_[at].id); });
    const BlockNumber added = known_.add();
    BlockNumber& head = buckets_.head(hash(before, id));
    known_[added] = {id, before, head};
    head = added;
    return added;
  }
  size_t size() const { return known_.size(); }
  // By number: the block before it.
  std::vector<BlockNumber> before() const {
    std::vector<BlockNumber> all(known_.size());
    for (BlockNumber at = 0; at < all.size(); ++at) all[at] = known_[at].before;
    return all;
  }

 private:
  struct Known {
    uint64_t id = 0;
    BlockNumber before = kNoBlockNumber;
    BlockNumber next_in_bucket = kNoBlockNumber;
  };
  static size_t hash(BlockNumber before, uint64_t id);

  StablePool<Known> known_;
  HashBuckets<BlockNumber, kNoBlockNumber> buckets_;
};

// The sums, from the requests and the numbering.
void finish(Trace& trace, const BlockNumbering& numbering);
// The number of blocks that `percent` of a trace's footprint is; at least one.
uint64_t capacity_of(const Trace& trace, double percent);

}  // namespace ember::replay
