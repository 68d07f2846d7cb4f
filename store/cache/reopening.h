// Reopening: yesterday's index, read in the background while requests already run.
//
// Journey    disk_tier, conversations -> [reopening] -> block_ledger, tail_ledger
// Owns       the walk through the store's records, and what it found until that has entered
// Invariant  a block enters only under its parent, and only if its hash follows from the secret,
//            its parent and its tokens; recency and hits come back from the touch records
// Threads    engine thread only; the walk and the ordering are host tasks of the read lane
// Not here   the order of the records on disk (store/disk_tier.h), that of their entering
//            (store/cache/record_harvest.h)
//
// Records come in the order of their hashes, so most come before their parents: all are gathered
// first, put in the order of their chains, and enter then, so many at a visit of the engine thread.
// What a prompt needs at once is not waited for: its blocks are hashed and asked for one by one
// (look_up), so the first request after opening hits however large the store is.
// Until all have entered nothing may be evicted from the disk: what looks like a leaf may have
// children that have not come yet.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "prefix_index/block_hash.h"
#include "store/cache/cache_context.h"
#include "store/cache/offload_executor.h"
#include "store/cache/record_batch.h"
#include "store/cache/record_harvest.h"
#include "store/cache/record_prover.h"

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
  void stop() { walking_ = set_aside_ = recalling_ = false; }
  bool loading() const { return context_.loading; }

  // While loading, or where damage kept blocks out of the index: asks the disk for those full
  // blocks of the prompt that the index does not have, for a scope: as far as `shared` has them and
  // then its own, and its own from the root on.
  // True while the answer is under way; the blocks found have entered when it is false.
  bool look_up(TokenSpan prompt, const std::string& scope);

  uint64_t unreadable() const { return unreadable_; }    // records that are damaged
  uint64_t unreachable() const { return unreachable_; }  // ours, but the parent is missing

 private:
  // A share of the walk; touched by its task alone while a step of it is under way.
  struct Share {
    explicit Share(uint32_t block_tokens) : harvest(block_tokens) {}
    DiskTier::ScanFrom from;
    bool done = false;
    bool under_way = false;
    RecordHarvest harvest;
    std::vector<ForeignRecord> foreign;  // of the last step
    uint64_t unreadable = 0;             // of the last step
  };
  // All that was gathered, as it enters.
  struct Entering {
    explicit Entering(uint32_t block_tokens) : harvest(block_tokens) {}
    RecordHarvest harvest;
    RecordHarvest::Order order;  // its task's alone until it has ended; so are the next ones
    std::vector<EvictionRanks::Remembered> remembered;
    std::vector<BlockId> entered;  // by number; kNoBlock: not yet, or set aside
    uint32_t tasks = 0;            // that have not ended
    size_t copied = 0;             // places whose batch has been begun
    std::deque<std::shared_ptr<RecordBatch>> batches;
  };
  // The blocks of a prompt from the first unknown one on; written by its task alone until it ends.
  struct LookUp {
    explicit LookUp(uint32_t block_tokens) : found(block_tokens) {}
    std::vector<TokenId> tokens;
    std::string scope;
    bool shared = false;  // the next block may be one of `shared`
    BlockHash parent;
    uint32_t position = 0;
    RecordHarvest found;
    BlockHash missing;  // the first that the disk does not have; or zero
  };

  RecordProver prover() const {
    return {context_.layout, context_.scopes, context_.name_space};
  }
  // reopening.cc: the walk, and what it found
  static Status read_step(DiskTier& disk, RecordProver& prover, size_t most, Share& share);
  Status read_at_once();
  void start_steps();
  void start_step(const std::shared_ptr<Share>& share);
  void step_ended(Share& share, const Status& status);
  void take(Share& share);
  bool all_read() const;
  void start_putting_together();
  void start_ordering(std::shared_ptr<Entering> entering);
  static void put_together(std::span<const std::shared_ptr<Share>> shares, Entering& entering);
  static void sort_by_use(uint64_t opened_unix_us, Entering& entering);
  void begin_entering(std::shared_ptr<Entering> entering);
  void start_batches();
  void go_on();
  void come_back();
  void come_again();
  void enter_batch(const RecordBatch& batch);
  void store_entered();
  // kNoScope: there are too many, and what is in it stays unreachable.
  ScopeId scope_of(const std::string& name) const;
  // kNoBlock: its parent is not there. `above`: as what its parent has entered, if that is known.
  BlockId enter(const RecordHarvest::Row& row, TokenSpan tokens, ScopeId scope, BlockId above,
                const std::string& publisher);
  void meet(BlockId known, const RecordHarvest::Row& row);
  void set_aside(const RecordHarvest::Row& row);
  void drop_empty_holes();
  void finish();
  std::optional<BlockId> parent_of(ScopeId scope, const BlockHash& parent, uint32_t position,
                                   BlockId known = kNoBlock) const;
  void take_tail(BlockRecord record);
  void enter_tail(BlockId parent, const BlockHash& hash);
  // Tails that waited for this block.
  void release_tails(const BlockHash& hash, BlockId block);

  // reopening_look_up.cc
  bool ask(TokenSpan prompt, const std::string& scope, bool shared);
  void start_look_up(std::shared_ptr<LookUp> asked, const BlockHash& first);
  static void read_blocks(DiskTier& disk, RecordProver& prover, LookUp& asked);
  static bool read_block(DiskTier& disk, RecordProver& prover, const std::string& scope,
                         TokenSpan tokens, LookUp& asked);

  CacheContext& context_;
  OffloadExecutor& offload_;
  std::vector<std::shared_ptr<Share>> shares_;
  std::shared_ptr<Entering> entering_;  // null until all is gathered and in order
  bool walking_ = false;        // there is more to come
  bool set_aside_ = false;      // blocks below one that could not be read: prompts look theirs up
  bool reading_failed_ = false;
  bool ordering_ = false;       // its tasks are under way
  bool recalling_ = false;      // the shadows still take in what has entered
  bool coming_back_ = false;    // after whatever else waits has had its turn
  uint32_t steps_under_way_ = 0;
  std::unordered_multimap<BlockHash, BlockHash> waiting_tails_;  // by parent
  struct Unstored {
    BlockId block = kNoBlock;
    int32_t epoch = 0;
    uint64_t stored_bytes = 0;
  };
  std::vector<Unstored> unstored_;  // entered just now; in the ledger without their copy
  std::vector<ForeignRecord> holes_;              // records whose groups are lost
  std::vector<BlockHash> doomed_tails_;           // damaged, or without a parent
  std::unordered_set<BlockHash> asked_;           // the first block of each look-up under way
  std::unordered_set<BlockHash> known_missing_;   // answered already
  uint64_t unreadable_ = 0;
  uint64_t unreachable_ = 0;
};

}  // namespace ember
