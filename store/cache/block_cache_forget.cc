// Forgetting a scope: from the index now, from the store by one task of the write lane.
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/cache/block_cache_impl.h"

namespace ember {

// Whatever hangs below goes too, children before their parents.
void BlockCacheImpl::forget_in_index(const ForgetRequest& request) {
  std::unordered_set<BlockId> going;
  std::vector<BlockId> blocks;
  for (BlockId block : ledger_.index().all_blocks()) {
    const bool own =
        request.all || scopes_.name(ledger_.index().scope(block)) == request.scope;
    if (!own && !going.contains(ledger_.entry(block).parent)) continue;
    going.insert(block);
    // A hole without a copy goes by itself, with the last block below it.
    if (ledger_.entry(block).anywhere()) blocks.push_back(block);
  }
  for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) {
    if (ledger_.is_tail(*it)) tails_.erase(ledger_.entry(*it).hash);
    std::vector<Tier> tiers;
    for (Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk}) {
      if (ledger_.entry(*it).in(tier)) tiers.push_back(tier);
    }
    for (Tier tier : tiers) ledger_.drop_copy(*it, tier);
  }
}

Status BlockCacheImpl::forget(const ForgetRequest& request, ForgetDone done) {
  if (context_.disk == nullptr || !context_.writable) {
    return {ErrorCode::kUnsupported, "forget: there is no store that can be written"};
  }
  if (open_chains_ > 0 || busy() || loading()) {
    return {ErrorCode::kBusy, "forget: requests or their offload are under way; try again"};
  }
  if (!request.dry_run) forget_in_index(request);
  auto outcome = std::make_shared<Result<ForgetReport>>(ForgetReport{});
  StoreDirectory* directory = parts_.directory.get();
  DiskTier* disk = context_.disk;
  Conversations* conversations = context_.conversations;
  const Ticket ticket = device_.run_host(
      HostLane::kWrite, [outcome, directory, disk, conversations, request]() -> Status {
        *outcome = forget_scope(directory, *disk, conversations, request);
        return {};
      });
  tickets_.on(ticket, [outcome, done = std::move(done)](const Status&) { done(*outcome); });
  return {};
}

}  // namespace ember
