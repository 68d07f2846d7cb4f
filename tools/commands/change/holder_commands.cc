// Pins and snapshots, handed to the running cache.
#include "tools/commands/change/holder_commands.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "store/block_cache.h"
#include "store/live_view.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/look/stored_prefix.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kPinForUs = int64_t{3600} * 1'000'000;
constexpr int64_t kDayUs = 24 * kPinForUs;

size_t pinned_tokens(const StoredPrefix& prefix, const LiveView& view) {
  const size_t block_tokens = prefix.tokens.size() / prefix.blocks.size();
  size_t pinned = 0;
  for (const LiveView::Place& place : view.places(prefix.blocks)) {
    pinned += place.pinned_until_unix_us != 0 ? block_tokens : 0;
  }
  return pinned;
}

Result<int> set_pin(const StoreChoice& store, const std::string& hash, int64_t for_us, bool json,
                    CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const LiveCache live, context.open_live(store));
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(store));
  EMBER_ASSIGN(const BlockTree tree, read_tree(*reader, io));
  EMBER_ASSIGN(const StoredPrefix prefix, stored_prefix(hash, *reader, tree));
  std::optional<Result<size_t>> pinned;
  size_t tokens = 0;
  EMBER_TRY(live.call([&] {
    if (for_us == 0) tokens = pinned_tokens(prefix, live.cache->live_view());
    pinned = live.cache->pin(prefix.tokens, for_us, prefix.scope);
  }));
  if (!pinned->ok()) return pinned->error();
  if (for_us != 0) tokens = **pinned;
  if (tokens == 0 && for_us != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 hash + ": is of another model than the one that the process serves"};
  }
  if (json) {
    io.out << Json(
                  {{for_us == 0 ? "unpinned_tokens" : "pinned_tokens", tokens}, {"for_us", for_us}})
                  .dump()
           << std::endl;
  } else if (for_us == 0) {
    io.out << (tokens == 0 ? "nothing of it was pinned"
                           : "unpinned " + counted(tokens, "token"))
           << std::endl;
  } else {
    io.out << "pinned " << counted(tokens, "token") << " until "
           << time_text(system_clock().unix_us() + for_us) << ", or the process ends" << std::endl;
  }
  return kExitOk;
}

}  // namespace

Result<int> run_pin(const PinOptions& options, CommandContext& context) {
  const int64_t for_us = options.for_us.value_or(kPinForUs);
  if (for_us > BlockCache::kLongestPinUs) {
    return Error{ErrorCode::kInvalidArgument,
                 "--for: expected at most " +
                     std::to_string(BlockCache::kLongestPinUs / kDayUs) + "d"};
  }
  return set_pin(options.store, options.hash, for_us, options.json, context);
}

Result<int> run_unpin(const UnpinOptions& options, CommandContext& context) {
  return set_pin(options.store, options.hash, 0, options.json, context);
}

Result<int> run_snapshot(const SnapshotOptions& options, CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const LiveCache live, context.open_live(options.store));
  EMBER_TRY(live.wait_for([&live] { return live.cache->sync(); }));
  EMBER_TRY(live.wait_for([&live, &options] { return live.cache->snapshot(options.target); }));
  uint64_t waiting = 0;
  EMBER_TRY(live.call([&] { waiting = live.cache->stats().waiting_blocks; }));
  if (waiting > 0) {
    io.err << "emberkv: warning: " << counted(waiting, "block")
           << " that the disk has not accepted are not in it" << std::endl;
  }
  const uint64_t bytes = directory_bytes(options.target);
  if (options.json) {
    io.out << Json({{"snapshot", options.target}, {"bytes", bytes}})
                  .dump(-1, ' ', false, Json::error_handler_t::replace)
           << std::endl;
  } else {
    io.out << options.target << ": " << human_bytes(bytes) << "; opens with --store" << std::endl;
  }
  return kExitOk;
}

}  // namespace ember
