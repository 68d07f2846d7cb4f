// A prompt's own blocks, asked for by their hashes while the records are read.
#include "store/cache/reopening.h"

#include <algorithm>
#include <utility>

namespace ember {
namespace {

constexpr size_t kLookUpBlocks = 2048;  // of one look-up: a prompt of 128k tokens
constexpr size_t kMostLookUps = 8;
constexpr size_t kMostKnownMissing = 4096;

}  // namespace

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
  auto asked = std::make_shared<LookUp>(context_.layout.block_tokens());
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
    const RecordHarvest& found = asked->found;
    for (uint32_t number = 0; number < found.size(); ++number) {
      const RecordHarvest::Row& row = found.row(number);
      static_cast<void>(enter(row, found.tokens(number), scope_of(found.name(row.scope)),
                              kNoBlock, found.name(row.publisher)));
    }
    store_entered();
    go_on();
  });
}

// On the read lane. A block that cannot be read is as good as missing. `missing` names the first
// block that is not there, as the scope's own.
void Reopening::read_blocks(DiskTier& disk, RecordProver& prover, LookUp& asked) {
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
bool Reopening::read_block(DiskTier& disk, RecordProver& prover, const std::string& scope,
                           TokenSpan tokens, LookUp& asked) {
  const BlockHash hash = prover.next(scope, asked.parent, tokens);
  Result<std::optional<BlockRecord>> read = disk.read_record(hash);
  if (!read.ok() || !read->has_value()) return false;
  const BlockRecord& record = **read;
  const bool right =
      prover.is_ours(record) && record.scope == scope && !record.tail &&
      record.parent == asked.parent && record.position == asked.position + asked.found.size() &&
      std::equal(tokens.begin(), tokens.end(), record.tokens.begin(), record.tokens.end()) &&
      !prover.is_damaged(record);
  if (!right) return false;
  asked.found.add(record, TouchRecord{});
  asked.parent = hash;
  asked.shared = asked.shared && scope == kSharedScopeName;
  return true;
}

}  // namespace ember
