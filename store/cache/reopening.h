// Reopening: yesterday's index, read in the background while requests already run.
//
// Journey    disk_tier, conversations -> [reopening] -> block_ledger, tail_ledger
// Owns       the walk through the store's records, and those whose parent has not come yet
// Invariant  a block enters only under its parent, and only if its hash follows from the secret,
//            its parent and its tokens; recency and hits come back from the touch records
// Threads    engine thread only; the walk is host tasks of the read lane, one at a time
// Not here   the order of the records on disk (store/disk_tier.h)
//
// Records come in the order of their hashes, so most come before their parents and wait. What a
// prompt needs at once is not waited for: its blocks are hashed and asked for one by one (look_up),
// so the first request after opening hits however large the store is.
// Until the walk is over nothing may be evicted from the disk: what looks like a leaf may have
// children that have not come yet.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "prefix_index/block_hash.h"
#include "store/cache/cache_context.h"
#include "store/cache/offload_executor.h"

namespace ember {

class Reopening {
 public:
  Reopening(CacheContext& context, OffloadExecutor& offload)
      : context_(context), offload_(offload) {}

  // Lists the tails and takes the first step of the walk, so that a small store is known when this
  // returns. Errors: kCorruption or kIo when the store's metadata cannot be read.
  Status begin();
  // The walk goes on. To be called after anything; returns at once.
  void advance();
  // No further step; what has not come stays unknown to this process.
  void stop() { walking_ = set_aside_ = false; }
  bool loading() const { return context_.loading; }

  // While loading, or where damage kept blocks out of the index: asks the disk for those full
  // blocks of the prompt that the index does not have, for a scope: as far as `shared` has them and
  // then its own, and its own from the root on.
  // True while the answer is under way; the blocks found have entered when it is false.
  bool look_up(TokenSpan prompt, const std::string& scope);

  uint64_t unreadable() const { return unreadable_; }    // records that are damaged
  uint64_t unreachable() const { return unreachable_; }  // ours, but the parent is missing

 private:
  // What the index needs of a record, proven by the walk's task.
  struct Found {
    BlockHash hash;
    BlockHash parent;
    uint64_t numerics_build = 0;
    uint32_t position = 0;
    uint32_t epoch = 0;
    uint64_t stored_bytes = 0;
    TouchRecord touch;
    std::vector<TokenId> tokens;
    std::string scope;
    std::string publisher;
  };
  // A step's outcome; written by its task alone until its ticket ends.
  struct Step {
    std::string cursor;
    bool done = false;
    std::vector<Found> found;
    std::vector<ForeignRecord> foreign;
    uint64_t unreadable = 0;
  };
  class Prover;
  // The blocks of a prompt from the first unknown one on; written by its task alone until it ends.
  struct LookUp {
    std::vector<TokenId> tokens;
    std::string scope;
    bool shared = false;  // the next block may be one of `shared`
    BlockHash parent;
    uint32_t position = 0;
    std::vector<Found> found;
    BlockHash missing;  // the first that the disk does not have; or zero
  };

  Prover prover() const;
  void start_step();
  void step_ended(const Status& status);
  void take(Step& step);
  void go_on();
  void enter_ready(size_t most);
  void enter(const Found& found);
  void drop_empty_holes();
  void finish();
  std::optional<BlockId> parent_of(const std::string& scope, const BlockHash& parent,
                                   uint32_t position) const;
  bool ask(TokenSpan prompt, const std::string& scope, bool shared);
  void start_look_up(std::shared_ptr<LookUp> asked, const BlockHash& first);
  static void read_blocks(DiskTier& disk, Prover& prover, LookUp& asked);
  static bool read_block(DiskTier& disk, Prover& prover, const std::string& scope,
                         TokenSpan tokens, LookUp& asked);
  // Entries of tails and blocks that waited for this block.
  void release_children(const BlockHash& hash, BlockId block);
  void take_tail(BlockRecord record);
  void enter_tail(BlockId parent, const BlockHash& hash);

  CacheContext& context_;
  OffloadExecutor& offload_;
  std::shared_ptr<Step> step_;  // the last one, or under way
  bool walking_ = false;        // there are more records to come
  bool set_aside_ = false;      // blocks below one that could not be read: prompts look theirs up
  bool ticket_out_ = false;     // a step, or a pause between two bounded parts of the work
  std::vector<Found> ready_;  // their parents are in the index; the next one is at the back
  std::unordered_multimap<BlockHash, Found> waiting_;            // by parent
  std::unordered_multimap<BlockHash, BlockHash> waiting_tails_;  // by parent
  std::vector<ForeignRecord> holes_;              // records whose groups are lost
  std::vector<BlockHash> doomed_tails_;           // damaged, or without a parent
  std::unordered_set<BlockHash> asked_;           // the first block of each look-up under way
  std::unordered_set<BlockHash> known_missing_;   // answered already
  uint64_t unreadable_ = 0;
  uint64_t unreachable_ = 0;
};

}  // namespace ember
