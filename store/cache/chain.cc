// A chain's restore, from its matched blocks to the length that arrived.
#include "store/cache/chain.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/cache/access_recorder.h"

namespace ember {

ChainImpl::ChainImpl(CacheContext& context, RestoreExecutor& restores, size_t& open_chains,
                     const ChainScope& scope)
    : context_(context), restores_(restores), open_chains_(open_chains), scope_(scope) {
  ++open_chains_;
}

ChainImpl::~ChainImpl() {
  fail_tickets("the request is gone");
  for (Fill* fill : fills_) {
    if (fill != nullptr) restores_.leave(fill, this);
  }
  restores_.forget_retry(this);
  record_access();
  // Slots first: what only this chain held may then go with its entry.
  own_.clear();
  shared_.clear();
  for (const Matched& matched : matched_) context_.ledger.let_go(matched.block);
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    context_.ledger.let_go(*block);
  }
  --open_chains_;
}

void ChainImpl::record_access() {
  // One that restored and committed nothing was no use of the cache.
  if (context_.accesses == nullptr || !ready_ || tokens_.empty()) return;
  AccessEntry entry;
  entry.unix_us = context_.clock.unix_us();
  entry.tokens = static_cast<uint32_t>(tokens_.size());
  entry.prompt_tokens = static_cast<uint32_t>(std::min(prompt_tokens_, tokens_.size()));
  for (size_t t = 0; t < kTierCount; ++t) {
    entry.restored_tokens[t] = static_cast<uint32_t>(report_.restored_tokens[t]);
  }
  entry.scope = context_.scopes.name(scope_.own);
  entry.conversation = conversation_;
  for (const BlockId block : blocks_) entry.blocks.push_back(context_.ledger.entry(block).hash);
  context_.accesses->add(std::move(entry));
}

void ChainImpl::add_matched(Matched matched) {
  context_.ledger.hold(matched.block);
  const bool in_place = matched.from == Tier::kDevice && matched.whole && !matched.joined;
  if (in_place && in_place_ == matched_.size()) ++in_place_;
  matched_.push_back(std::move(matched));
}

void ChainImpl::drop_last_matched() {
  EMBER_CHECK(matched_.size() > in_place_, "a block that is in place costs no slot");
  const BlockId block = matched_.back().block;
  matched_.pop_back();
  context_.ledger.let_go(block);
}

void ChainImpl::set_slots(std::vector<SlotLease> own) {
  own_.resize(in_place_);
  shared_.resize(in_place_ + own.size());
  for (SlotLease& lease : own) own_.push_back(std::move(lease));
  for (size_t i = 0; i < in_place_; ++i) shared_[i] = std::move(matched_[i].source);
  table_.resize(own_.size());
  for (size_t i = 0; i < table_.size(); ++i) table_[i] = slot(i).slot();
}

void ChainImpl::start(TokenSpan prompt, int64_t match_us, int64_t deadline_us) {
  started_us_ = context_.clock.now_us();
  report_.match_us = match_us;
  prompt_tokens_ = prompt.size();
  length_ = in_place_ * context_.layout.block_tokens();
  size_t planned = 0;
  for (const Matched& matched : matched_) planned += matched.tokens;
  tokens_.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(planned));
  progress_.assign(matched_.size(), Progress::kArrived);
  fills_.assign(matched_.size(), nullptr);
  missing_.assign(context_.layout.group_count(), 0);
  for (size_t i = in_place_; i < matched_.size(); ++i) begin_fill(i, deadline_us);
  for (size_t i = 0; i < table_.size(); ++i) table_[i] = slot(i).slot();
  open_groups();
  if (waiting_ == 0) conclude();
}

void ChainImpl::begin_fill(size_t index, int64_t deadline_us) {
  Matched& matched = matched_[index];
  if (matched.joined == nullptr && matched.whole && matched.from == Tier::kDevice) {
    shared_[index] = std::move(matched.source);  // there already: only what is before it is missing
    return;
  }
  progress_[index] = Progress::kWaiting;
  ++waiting_;
  if (matched.joined != nullptr) {
    shared_[index] = matched.joined->target.share();
    fills_[index] = matched.joined;
    restores_.join(matched.joined, this);
    const uint32_t there = matched.joined->batch == nullptr ? 0 : matched.joined->batch->arrived;
    for (size_t g = there; g < missing_.size(); ++g) ++missing_[g];
    return;
  }
  auto fill = std::make_unique<Fill>();
  fill->block = matched.block;
  fill->from = matched.from;
  fill->tokens = matched.tokens;
  fill->whole = matched.whole;
  fill->target = own_[index].share();
  fill->source = std::move(matched.source);
  fill->deadline_us = deadline_us;
  fills_[index] = restores_.add(std::move(fill), this);
  for (size_t& missing : missing_) ++missing;
}

void ChainImpl::groups_arrived(const Fill&, uint32_t first, uint32_t last) {
  for (uint32_t g = first; g < last; ++g) --missing_[g];
  open_groups();
}

// A group is readable when it and all before it are in place everywhere.
void ChainImpl::open_groups() {
  while (!lost_ && readable_groups_ < missing_.size() && missing_[readable_groups_] == 0) {
    const uint32_t group = readable_groups_++;
    if (group >= group_tickets_.size() || !group_tickets_[group]) continue;
    context_.device.post(std::exchange(group_tickets_[group], Ticket{}), Status{});
  }
}

void ChainImpl::lose() {
  lost_ = true;
  fail_tickets("a block of its prefix did not come");
}

void ChainImpl::fail_tickets(const char* reason) {
  for (Ticket& ticket : group_tickets_) {
    if (!ticket) continue;
    context_.device.post(std::exchange(ticket, Ticket{}), Status(ErrorCode::kCancelled, reason));
  }
}

std::span<const Ticket> ChainImpl::begin_step() {
  EMBER_CHECK(!ready_ && !lost_ && !in_step_, "a step on a chain that has no groups to wait for");
  in_step_ = true;
  group_tickets_.assign(missing_.size(), Ticket{});
  for (uint32_t g = readable_groups_; g < missing_.size(); ++g) {
    group_tickets_[g] = context_.device.external_ticket();
    context_.tickets.on(group_tickets_[g], [](const Status&) {});
  }
  return group_tickets_;
}

void ChainImpl::give_way() { fail_tickets("others want the device"); }

void ChainImpl::end_step() {
  fail_tickets("its step has ended");
  in_step_ = false;
  if (waiting_ == 0 && !ready_) conclude();
}

void ChainImpl::fill_settled(const Fill& fill) {
  const auto found = std::find(fills_.begin(), fills_.end(), &fill);
  EMBER_CHECK(found != fills_.end(), "a fill settles that the chain does not wait for");
  *found = nullptr;
  const auto index = static_cast<size_t>(found - fills_.begin());
  const bool done = fill.state == Fill::State::kDone;
  progress_[index] = done ? Progress::kArrived : Progress::kFailed;
  if (fill.damaged) ++report_.damaged_blocks;
  --waiting_;
  if (!done) {
    lose();
    stop_after(index);
  }
  if (waiting_ > 0 || ready_) return;
  arrived_us_ = context_.clock.now_us();
  if (!in_step_) conclude();
}

// Later blocks are of no use to this chain. What fills its own slots must end before it is ready.
void ChainImpl::stop_after(size_t failed) {
  for (size_t i = failed + 1; i < fills_.size(); ++i) {
    if (fills_[i] == nullptr) continue;
    if (shared_[i]) {
      restores_.leave(std::exchange(fills_[i], nullptr), this);
      progress_[i] = Progress::kFailed;
      --waiting_;
    } else {
      restores_.cancel(fills_[i]);
    }
  }
}

// The engine will write the slots from `arrived` on, so nobody else may find or hold them. False:
// one is held by another chain and no slot is free in its place.
bool ChainImpl::free_own_slots(size_t arrived) {
  for (size_t i = arrived; i < matched_.size(); ++i) {
    shared_[i].release();
    if (context_.device_pool.slots().leases(own_[i].slot()) > 1) {
      std::optional<SlotLease> other = context_.ledger.take_device_slot();
      if (!other) return false;
      own_[i] = std::move(*other);
    }
    if (matched_[i].whole) context_.ledger.unpublish_device(matched_[i].block, own_[i]);
  }
  return true;
}

void ChainImpl::conclude() {
  const auto first_failed = std::find(progress_.begin(), progress_.end(), Progress::kFailed);
  const auto arrived = static_cast<size_t>(first_failed - progress_.begin());
  if (!free_own_slots(arrived)) {
    restores_.retry_later(this);
    return;
  }
  length_ = 0;
  for (size_t i = 0; i < matched_.size(); ++i) {
    const Matched& matched = matched_[i];
    if (i < arrived) {
      length_ += matched.tokens;
      report_.restored_tokens[static_cast<size_t>(matched.from)] += matched.tokens;
      if (shared_[i]) own_[i].release();
      if (matched.whole) {
        blocks_.push_back(matched.block);
        continue;
      }
    }
    context_.ledger.let_go(matched.block);
  }
  matched_.clear();
  tokens_.resize(length_);
  for (size_t i = 0; i < table_.size(); ++i) table_[i] = slot(i).slot();
  ScopeCounters& own = context_.scopes.counters(scope_.own);
  for (size_t t = 0; t < kTierCount; ++t) {
    own.restored_tokens[t] += report_.restored_tokens[t];
    context_.counters.restored_tokens[t] += report_.restored_tokens[t];
  }
  report_.restore_us = (arrived_us_ > 0 ? arrived_us_ : context_.clock.now_us()) - started_us_;
  ready_ = true;
}

void ChainImpl::append(TokenSpan tokens) {
  EMBER_CHECK(ready_, "tokens are committed to a chain that is still restoring");
  EMBER_CHECK(tokens_.size() + tokens.size() <= table_.size() * context_.layout.block_tokens(),
              "more tokens are committed than the chain was opened for");
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  length_ = tokens_.size();
}

void ChainImpl::add_block(BlockId block) {
  context_.ledger.hold(block);
  blocks_.push_back(block);
}

}  // namespace ember
