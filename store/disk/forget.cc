// Forget: finds what belongs to a scope, destroys its key, erases it, and retires its epochs.
#include "store/forget.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ember {
namespace {

using Listed = std::pair<BlockRecord, TouchRecord>;

struct Found {
  std::vector<BlockHash> blocks;
  std::vector<BlockHash> tails;
  std::vector<std::string> conversations;
  std::vector<uint32_t> epochs;
};

bool asked_for(const ForgetRequest& request, const std::string& scope) {
  return request.all || scope == request.scope;
}

// Parents first, so that one pass finds all that hangs below what goes.
void find_blocks(std::vector<Listed> records, const ForgetRequest& request, Found& found,
                 std::unordered_set<BlockHash>& going, ForgetReport& report) {
  std::sort(records.begin(), records.end(), [](const Listed& a, const Listed& b) {
    return a.first.position < b.first.position;
  });
  std::set<uint32_t> epochs;
  for (const Listed& listed : records) {
    const BlockRecord& record = listed.first;
    const bool own = asked_for(request, record.scope);
    if (!own && !going.contains(record.parent)) continue;
    ++(own ? report.blocks : report.blocks_below);
    report.stored_bytes += record.stored_bytes();
    going.insert(record.hash);
    found.blocks.push_back(record.hash);
    epochs.insert(record.epoch);
  }
  found.epochs.assign(epochs.begin(), epochs.end());
  report.epochs = found.epochs.size();
}

Result<Found> find(DiskTier& disk, Conversations* conversations, const ForgetRequest& request,
                   ForgetReport& report) {
  Found found;
  std::unordered_set<BlockHash> going;
  EMBER_ASSIGN(DiskTier::Listing listing, disk.list());
  find_blocks(std::move(listing.records), request, found, going, report);
  if (conversations == nullptr) return found;
  EMBER_ASSIGN(const Conversations::TailListing tails, conversations->list_tails());
  for (const BlockRecord& tail : tails.records) {
    if (!asked_for(request, tail.scope) && !going.contains(tail.parent)) continue;
    found.tails.push_back(tail.hash);
  }
  EMBER_ASSIGN(const std::vector<Conversation> heads, conversations->list());
  for (const Conversation& head : heads) {
    if (asked_for(request, head.scope)) found.conversations.push_back(head.id);
  }
  report.tails = found.tails.size();
  report.conversations = found.conversations.size();
  return found;
}

Status destroy_keys(StoreDirectory* directory, const ForgetRequest& request,
                    ForgetReport& report) {
  if (directory == nullptr) return {};
  std::vector<std::string> scopes{request.scope};
  if (request.all) scopes = directory->key_scopes();
  for (const std::string& scope : scopes) {
    EMBER_ASSIGN(const bool had_one, directory->destroy_key(scope));
    report.keys += had_one ? 1 : 0;
  }
  return {};
}

Status erase(DiskTier& disk, Conversations* conversations, const Found& found) {
  // Children first: a crash in between leaves none without its parent.
  for (auto it = found.blocks.rbegin(); it != found.blocks.rend(); ++it) {
    EMBER_TRY(disk.erase(*it));
  }
  for (const BlockHash& tail : found.tails) EMBER_TRY(conversations->erase_tail(tail));
  for (const std::string& id : found.conversations) EMBER_TRY(conversations->remove(id));
  return disk.flush();
}

}  // namespace

Result<ForgetReport> forget_scope(StoreDirectory* directory, DiskTier& disk,
                                  Conversations* conversations, const ForgetRequest& request) {
  if (!request.all && request.scope.empty()) {
    return Error{ErrorCode::kInvalidArgument, "forget: a scope has to be named, or all"};
  }
  ForgetReport report;
  EMBER_ASSIGN(const Found found, find(disk, conversations, request, report));
  if (request.dry_run) return report;
  EMBER_TRY(destroy_keys(directory, request, report));
  EMBER_TRY(erase(disk, conversations, found));
  if (!request.now) return report;
  Status removed = disk.retire_epochs(found.epochs);
  if (removed.ok() && conversations != nullptr) removed = conversations->purge();
  report.bytes_gone = removed.ok();
  if (!removed.ok()) report.reason = removed.error().message;
  return report;
}

}  // namespace ember
