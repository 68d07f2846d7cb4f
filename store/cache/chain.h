// Chain: a request's slots, from the first restored block to the last computed one.
//
// Journey    restore_executor -> [chain] -> latent_attention; commit -> [chain] -> offload_executor
// Owns       a lease for each of its slots; holds the index entries of its full blocks
// Invariant  its own slots are written by its engine only; a slot that others can find is never
//            written. Where a restore breaks off, every later slot is its own
// Threads    engine thread only
// Not here   which blocks a prompt matches (store/cache/block_cache_impl.h)
//
// Every block that is not on the device when the chain opens has a slot of the chain's own, also
// where another chain's fill, or a copy beyond a block still missing, is shared: those are leased
// beside it, and replace it if the restore gets that far.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "store/cache/cache_context.h"
#include "store/cache/restore_executor.h"

namespace ember {

// Where a chain's blocks go: the first `shared_blocks` to `shared`, then its own scope's.
struct ChainScope {
  ScopeId own = kSharedScope;
  size_t shared_blocks = 0;
};

class ChainImpl final : public Chain, private FillWaiter {
 public:
  ChainImpl(CacheContext& context, RestoreExecutor& restores, size_t& open_chains,
            const ChainScope& scope);
  ~ChainImpl() override;
  ChainImpl(const ChainImpl&) = delete;
  ChainImpl& operator=(const ChainImpl&) = delete;

  std::span<const int32_t> block_table() const override { return table_; }
  size_t length() const override { return length_; }
  bool ready() const override { return ready_; }
  const RestoreReport& restore_report() const override { return report_; }
  size_t expected_length() const override { return ready_ ? length_ : tokens_.size(); }
  uint32_t readable_groups() const override { return lost_ ? 0 : readable_groups_; }
  std::span<const Ticket> begin_step() override;
  void give_way() override;
  void end_step() override;

  const ChainScope& scope() const { return scope_; }

  // --- opening: matched blocks in order, then the chain's own slots, then start
  struct Matched {
    BlockId block = kNoBlock;
    Tier from = Tier::kDevice;
    uint32_t tokens = 0;     // that agree
    bool whole = true;       // all of a full block
    SlotLease source;        // its copy on the device or in the host tier, if it has one
    Fill* joined = nullptr;  // another chain's fill of it
  };
  // Blocks that are read in place: from the front on, on the device.
  size_t in_place() const { return in_place_; }
  size_t matched() const { return matched_.size(); }
  void add_matched(Matched matched);
  // Gives up the last matched block, and with it what its source holds.
  void drop_last_matched();
  void set_slots(std::vector<SlotLease> own);
  void start(TokenSpan prompt, int64_t match_us, int64_t deadline_us);

  // --- after it is ready
  // Tokens whose latents are in their slots now.
  void append(TokenSpan tokens);
  TokenSpan tokens() const { return tokens_; }
  // Full blocks that the index knows, in order.
  const std::vector<BlockId>& blocks() const { return blocks_; }
  void add_block(BlockId block);

  // --- eviction: what the shadow directories are told of this request, at its first commit
  void foresee(std::vector<ShadowId> prompt_blocks) { foreseen_ = std::move(prompt_blocks); }
  std::vector<ShadowId> take_foreseen() { return std::exchange(foreseen_, {}); }
  void set_told_blocks(size_t blocks) { told_blocks_ = blocks; }
  size_t told_blocks() const { return told_blocks_; }
  void set_one_shot() { one_shot_ = true; }
  bool one_shot() const { return one_shot_; }
  void set_conversation(std::string id) { conversation_ = std::move(id); }
  // The lease of the slot that the block at `position` is in.
  const SlotLease& slot(size_t position) const {
    return shared_[position] ? shared_[position] : own_[position];
  }

 private:
  enum class Progress : uint8_t { kWaiting, kArrived, kFailed };

  void groups_arrived(const Fill& fill, uint32_t first, uint32_t last) override;
  void fill_settled(const Fill& fill) override;
  void retry() override { conclude(); }
  void begin_fill(size_t index, int64_t deadline_us);
  void open_groups();
  void lose();
  void fail_tickets(const char* reason);
  void stop_after(size_t failed);
  bool free_own_slots(size_t arrived);
  void conclude();
  void record_access();

  CacheContext& context_;
  RestoreExecutor& restores_;
  size_t& open_chains_;
  const ChainScope scope_;
  std::vector<SlotLease> own_;
  std::vector<SlotLease> shared_;
  std::vector<int32_t> table_;
  std::vector<TokenId> tokens_;  // of length_ tokens once ready
  std::vector<BlockId> blocks_;  // held

  // While restoring, by matched block.
  std::vector<Matched> matched_;
  std::vector<Progress> progress_;
  std::vector<Fill*> fills_;
  size_t in_place_ = 0;
  size_t waiting_ = 0;

  // By layer group: blocks in which it is still to come, and the ticket of the step under way.
  std::vector<size_t> missing_;
  std::vector<Ticket> group_tickets_;
  uint32_t readable_groups_ = 0;
  bool lost_ = false;     // a block failed: what a step reads may never come
  bool in_step_ = false;  // before it is ready

  std::vector<ShadowId> foreseen_;
  size_t told_blocks_ = 0;
  bool one_shot_ = false;
  // For the access log.
  std::string conversation_;
  size_t prompt_tokens_ = 0;

  size_t length_ = 0;
  bool ready_ = false;
  int64_t started_us_ = 0;
  int64_t arrived_us_ = 0;  // when the last fill settled
  RestoreReport report_;
};

}  // namespace ember
