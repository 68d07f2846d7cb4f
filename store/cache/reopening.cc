// Records to index entries, parents first, a bounded number at a time.
#include "store/cache/reopening.h"

#include <algorithm>
#include <utility>

#include "store/cache/block_coder.h"

namespace ember {
namespace {

// Of one visit of the engine thread: some 3 ms.
constexpr size_t kEntriesAtOnce = 2048;
constexpr size_t kLookUpBlocks = 4096;  // of one look-up
constexpr size_t kMostLookUps = 8;
constexpr size_t kMostKnownMissing = 4096;

}  // namespace

// Runs on the read lane: decides of each record whether it may enter.
class Reopening::Prover {
 public:
  Prover(const KvLayout& layout, const ScopeBook& scopes, const NamespaceHash& name_space)
      : layout_(layout), scopes_(scopes), name_space_(name_space) {}

  bool is_ours(const BlockRecord& record) const {
    return record.name_space == name_space_ && !record.scope.empty();
  }
  bool is_damaged(const BlockRecord& record) {
    return !check_record_shape(record, layout_).ok() ||
           next(record.scope, record.parent, record.tokens) != record.hash;
  }

  size_t block_tokens() const { return layout_.block_tokens(); }
  BlockHash next(const std::string& scope, const BlockHash& parent, TokenSpan tokens) {
    auto hasher = hashers_.find(scope);
    if (hasher == hashers_.end()) {
      if (hashers_.size() == ScopeBook::kMaxScopes) hashers_.clear();
      hasher = hashers_.emplace(scope, scopes_.make_hasher(scope)).first;
    }
    return hasher->second.next(parent, tokens);
  }

  static Found found(BlockRecord record, const TouchRecord& touch) {
    const uint64_t stored_bytes = record.stored_bytes();
    return {record.hash,
            record.parent,
            record.numerics_build,
            record.position,
            record.epoch,
            stored_bytes,
            touch,
            std::move(record.tokens),
            std::move(record.scope),
            std::move(record.publisher)};
  }

  void prove(DiskTier::ScanStep scanned, Step& step) {
    step.cursor = std::move(scanned.cursor);
    step.done = scanned.done;
    step.unreadable = scanned.found.unreadable;
    for (auto& [record, touch] : scanned.found.records) {
      const bool ours = is_ours(record);
      if (ours && !record.tail && !is_damaged(record)) {
        step.found.push_back(found(std::move(record), touch));
        continue;
      }
      if (ours) ++step.unreadable;
      step.foreign.push_back({record.hash, record.position, record.stored_bytes()});
    }
  }

 private:
  const KvLayout& layout_;
  const ScopeBook& scopes_;  // of which only make_hasher is used
  NamespaceHash name_space_;
  std::unordered_map<std::string, BlockHasher> hashers_;
};

Reopening::Prover Reopening::prover() const {
  return {context_.layout, context_.scopes, context_.name_space};
}

Status Reopening::begin() {
  // Both lists before the first entry: the index never names what the cache then does without.
  Conversations::TailListing tails;
  if (context_.conversations != nullptr) {
    EMBER_ASSIGN(tails, context_.conversations->list_tails());
  }
  EMBER_ASSIGN(DiskTier::ScanStep first,
               context_.disk->scan({}, context_.tuning.records_at_opening));
  context_.loading = walking_ = true;
  step_ = std::make_shared<Step>();
  prover().prove(std::move(first), *step_);
  unreadable_ += tails.unreadable;
  for (BlockRecord& record : tails.records) take_tail(std::move(record));
  take(*step_);
  enter_ready(ready_.size() + waiting_.size());
  go_on();
  return {};
}

void Reopening::start_step() {
  DiskTier* disk = context_.disk;
  auto step = std::make_shared<Step>();
  step->cursor = step_->cursor;
  step_ = step;
  ticket_out_ = true;
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead,
      [disk, step, prover = prover(),
       most = context_.tuning.records_of_a_step]() mutable -> Status {
        EMBER_ASSIGN(DiskTier::ScanStep scanned, disk->scan(step->cursor, most));
        prover.prove(std::move(scanned), *step);
        return {};
      });
  context_.tickets.on(ticket, [this](const Status& status) { step_ended(status); });
}

void Reopening::step_ended(const Status& status) {
  ticket_out_ = false;
  if (!status.ok()) {
    // What came so far can be read. What did not must not be written over.
    context_.writable = false;
    context_.health.tell(HealthTopic::kOpening, status.error().message);
    ++unreadable_;
    return finish();
  }
  if (!walking_) return;
  take(*step_);
  go_on();
}

// The next step runs while this one's blocks enter.
void Reopening::go_on() {
  if (!walking_) return;
  const bool behind = ready_.size() > 2 * kEntriesAtOnce;
  if (!ticket_out_ && !step_->done && !behind) start_step();
  enter_ready(kEntriesAtOnce);
  if (ticket_out_) return;
  if (step_->done && ready_.empty()) {
    // A look-up may still bring what it has read.
    if (asked_.empty()) finish();
    return;
  }
  // More than one visit's worth is ready: come back after whatever else waits has had its turn.
  ticket_out_ = true;
  const Ticket pause = context_.device.run_host(HostLane::kRead, [] { return Status{}; });
  context_.tickets.on(pause, [this](const Status&) {
    ticket_out_ = false;
    go_on();
  });
}

void Reopening::take(Step& step) {
  unreadable_ += step.unreadable;
  offload_.add_foreign(step.foreign);
  for (Found& found : step.found) {
    if (parent_of(found.scope, found.parent, found.position)) {
      ready_.push_back(std::move(found));
    } else {
      const BlockHash parent = found.parent;
      waiting_.emplace(parent, std::move(found));
    }
  }
  step.found.clear();
}

// The parent's entry: kNoBlock for a first block; nothing if it has not come.
std::optional<BlockId> Reopening::parent_of(const std::string& scope, const BlockHash& parent,
                                            uint32_t position) const {
  const Result<ScopeId> own = context_.scopes.add(scope);
  if (!own.ok()) return std::nullopt;  // too many scopes: it stays unreachable
  if (position == 0) {
    if (parent != context_.scopes.hasher(*own).root()) return std::nullopt;
    return kNoBlock;
  }
  const RadixIndex& index = context_.ledger.index();
  const BlockId block = index.find(parent);
  if (block == kNoBlock || context_.ledger.is_tail(block)) return std::nullopt;
  const ScopeId above = index.scope(block);
  if (above != *own && above != kSharedScope) return std::nullopt;
  if (context_.ledger.entry(block).position + 1 != position) return std::nullopt;
  return block;
}

void Reopening::enter_ready(size_t most) {
  for (; most > 0 && !ready_.empty(); --most) {
    const Found found = std::move(ready_.back());
    ready_.pop_back();
    enter(found);
  }
}

void Reopening::enter(const Found& found) {
  const std::optional<BlockId> parent = parent_of(found.scope, found.parent, found.position);
  if (!parent && !walking_) return;
  if (!parent) {  // forgotten since it came
    ++unreachable_;
    const ForeignRecord aside{found.hash, found.position, found.stored_bytes};
    return offload_.add_foreign({&aside, 1});
  }
  BlockLedger& ledger = context_.ledger;
  const ScopeId scope = context_.scopes.find(found.scope);
  const BlockId known = ledger.index().find_child(scope, *parent, found.tokens);
  if (known != kNoBlock) {
    // Asked for by a prompt, or computed anew, since opening.
    const BlockEntry& entry = ledger.entry(known);
    const bool same = entry.numerics_build == found.numerics_build && !entry.damaged;
    if (same && found.epoch != 0 && !entry.in(Tier::kDisk)) {
      ledger.set_stored(known, static_cast<int32_t>(found.epoch & 0x7fffffffu),
                        found.stored_bytes);
    }
    ledger.recall(known, found.touch);
    return release_children(found.hash, known);
  }
  const BlockId block =
      ledger.adopt(scope, *parent, found.tokens, found.hash, found.numerics_build, found.touch);
  if (scope == kSharedScope && !found.publisher.empty()) {
    const Result<ScopeId> publisher = context_.scopes.add(found.publisher);
    if (publisher.ok()) ledger.set_publisher(block, *publisher);
  }
  if (found.epoch == 0) {  // a hole: the drive was full once, or its groups were damaged
    ledger.add_hole(block);
    holes_.push_back({found.hash, found.position, 0});
    return release_children(found.hash, block);
  }
  ledger.set_stored(block, static_cast<int32_t>(found.epoch & 0x7fffffffu), found.stored_bytes);
  if (!walking_) offload_.forget_foreign(found.hash);
  release_children(found.hash, block);
}

void Reopening::release_children(const BlockHash& hash, BlockId block) {
  const auto [first, last] = waiting_.equal_range(hash);
  for (auto it = first; it != last; ++it) ready_.push_back(std::move(it->second));
  waiting_.erase(first, last);
  const auto [first_tail, last_tail] = waiting_tails_.equal_range(hash);
  for (auto it = first_tail; it != last_tail; ++it) enter_tail(block, it->second);
  waiting_tails_.erase(first_tail, last_tail);
}

void Reopening::take_tail(BlockRecord record) {
  Prover rules = prover();
  if (!rules.is_ours(record)) {
    context_.tails.add(std::move(record));  // another namespace's: counted, and the first to go
    return;
  }
  const BlockHash hash = record.hash;
  const BlockHash parent = record.parent;
  if (!record.tail || rules.is_damaged(record)) {
    ++unreadable_;
    doomed_tails_.push_back(hash);
    return;
  }
  const std::optional<BlockId> known = parent_of(record.scope, parent, record.position);
  context_.tails.add(std::move(record));
  if (known) return enter_tail(*known, hash);
  waiting_tails_.emplace(parent, hash);
}

void Reopening::enter_tail(BlockId parent, const BlockHash& hash) {
  const BlockRecord* record = context_.tails.find(hash);
  if (record == nullptr) return;  // it has made room since
  if (!parent_of(record->scope, record->parent, record->position)) return;
  const BlockId block =
      context_.ledger.adopt(context_.scopes.find(record->scope), parent, record->tokens, hash,
                            record->numerics_build, TouchRecord{});
  if (context_.ledger.entry(block).numerics_build != record->numerics_build) return;
  context_.ledger.set_stored(block, kTailEpoch, record->stored_bytes());
}

bool Reopening::look_up(TokenSpan prompt, const std::string& scope) {
  if (!walking_ && !set_aside_) return false;
  const bool shared = ask(prompt, scope, true);
  const bool own = scope != kSharedScopeName && ask(prompt, scope, false);
  return shared || own;
}

// Walks what the index has, as far as `shared` goes if that is asked for, then in the scope; from
// there on the disk is asked.
bool Reopening::ask(TokenSpan prompt, const std::string& scope, bool shared) {
  const size_t span = context_.layout.block_tokens();
  const RadixIndex& index = context_.ledger.index();
  const ScopeId own = context_.scopes.find(scope);
  BlockId parent = kNoBlock;
  size_t at = 0;
  while (at + span <= prompt.size()) {
    const TokenSpan tokens = prompt.subspan(at, span);
    BlockId block = shared ? index.find_child(kSharedScope, parent, tokens) : kNoBlock;
    // Its own first block is asked for apart.
    const bool may_be_own = own != kNoScope && (!shared || parent != kNoBlock);
    if (block == kNoBlock && may_be_own) block = index.find_child(own, parent, tokens);
    if (block == kNoBlock) break;
    shared = shared && index.scope(block) == kSharedScope;
    parent = block;
    at += span;
  }
  const size_t blocks = std::min((prompt.size() - at) / span, kLookUpBlocks);
  if (blocks == 0) return false;
  auto asked = std::make_shared<LookUp>();
  asked->scope = scope;
  asked->shared = shared;
  const BlockHasher hasher = context_.scopes.make_hasher(scope);
  if (parent != kNoBlock) {
    asked->parent = context_.ledger.entry(parent).hash;
  } else {
    asked->parent = shared ? context_.scopes.hasher(kSharedScope).root() : hasher.root();
  }
  asked->position = static_cast<uint32_t>(at / span);
  const BlockHash first = hasher.next(asked->parent, prompt.subspan(at, span));
  if (known_missing_.contains(first)) return false;
  if (asked_.contains(first) || asked_.size() >= kMostLookUps) return true;
  const TokenSpan tokens = prompt.subspan(at, blocks * span);
  asked->tokens.assign(tokens.begin(), tokens.end());
  start_look_up(std::move(asked), first);
  return true;
}

void Reopening::start_look_up(std::shared_ptr<LookUp> asked, const BlockHash& first) {
  asked_.insert(first);
  DiskTier* disk = context_.disk;
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [disk, asked, prover = prover()]() mutable -> Status {
        read_blocks(*disk, prover, *asked);
        return {};
      });
  context_.tickets.on(ticket, [this, asked, first](const Status&) {
    asked_.erase(first);
    if (!walking_ && !set_aside_) return;
    if (known_missing_.size() >= kMostKnownMissing) known_missing_.clear();
    known_missing_.insert(asked->missing);
    context_.counters.looked_up_blocks += asked->found.size();
    for (const Found& found : asked->found) enter(found);
    go_on();
  });
}

// On the read lane. A block that cannot be read is as good as missing. `missing` names the first
// block that is not there, as the scope's own.
void Reopening::read_blocks(DiskTier& disk, Prover& prover, LookUp& asked) {
  const size_t span = prover.block_tokens();
  const std::string shared_name(kSharedScopeName);
  for (size_t at = 0; at < asked.tokens.size(); at += span) {
    const TokenSpan tokens = TokenSpan(asked.tokens).subspan(at, span);
    asked.missing = prover.next(asked.scope, asked.parent, tokens);
    if (asked.shared && read_block(disk, prover, shared_name, tokens, asked)) continue;
    if (asked.scope == shared_name) return;
    if (!read_block(disk, prover, asked.scope, tokens, asked)) return;
  }
  asked.missing = BlockHash{};
}

// The block of this scope after those that were found; false if it is not there.
bool Reopening::read_block(DiskTier& disk, Prover& prover, const std::string& scope,
                           TokenSpan tokens, LookUp& asked) {
  const BlockHash hash = prover.next(scope, asked.parent, tokens);
  Result<std::optional<BlockRecord>> read = disk.read_record(hash);
  if (!read.ok() || !read->has_value()) return false;
  BlockRecord& record = **read;
  const bool right =
      prover.is_ours(record) && record.scope == scope && !record.tail &&
      record.parent == asked.parent && record.position == asked.position + asked.found.size() &&
      std::equal(tokens.begin(), tokens.end(), record.tokens.begin(), record.tokens.end()) &&
      !prover.is_damaged(record);
  if (!right) return false;
  asked.found.push_back(prover.found(std::move(record), TouchRecord{}));
  asked.parent = hash;
  asked.shared = asked.shared && scope == kSharedScopeName;
  return true;
}

// Holes below which nothing is left are of no use. The deepest first.
void Reopening::drop_empty_holes() {
  std::sort(holes_.begin(), holes_.end(),
            [](const auto& a, const auto& b) { return a.position > b.position; });
  for (const ForeignRecord& hole : holes_) {
    if (context_.ledger.forget_empty_hole(hole.hash)) offload_.add_foreign({&hole, 1});
  }
  holes_.clear();
}

void Reopening::finish() {
  walking_ = context_.loading = false;
  context_.ledger.loaded(context_.disk_limit_bytes);
  for (const auto& [parent, found] : waiting_) {
    // Under a record that cannot be read they are below a hole; else they are what must not be.
    if (unreadable_ == 0) ++unreachable_;
    const ForeignRecord aside{found.hash, found.position, found.stored_bytes};
    offload_.add_foreign({&aside, 1});
  }
  // What lies below them, or behind them in a damaged table, can be reached by its own key.
  set_aside_ = unreadable_ > 0;
  waiting_.clear();
  for (const auto& [parent, hash] : waiting_tails_) {
    if (context_.tails.find(hash) == nullptr) continue;
    context_.tails.erase(hash);
    doomed_tails_.push_back(hash);
  }
  waiting_tails_.clear();
  known_missing_.clear();
  ready_ = {};
  drop_empty_holes();
  offload_.erase_tails(std::exchange(doomed_tails_, {}));
}

}  // namespace ember
