// Entries of the access log, block by block, as requests.
#include "store/replay/log_trace.h"

#include <algorithm>
#include <utility>

namespace ember::replay {

void LogTraceBuilder::add(const AccessEntry& entry) {
  if (log_.trace.requests.empty()) log_.first_unix_us = entry.unix_us;
  log_.last_unix_us = std::max(log_.last_unix_us, entry.unix_us);
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    log_.restored_tokens[tier] += entry.restored_tokens[tier];
  }
  Request request;
  request.at_s = static_cast<double>(entry.unix_us - log_.first_unix_us) / 1e6;
  request.blocks = static_cast<uint32_t>(entry.blocks.size());
  request.looked_up = std::min(request.blocks, entry.prompt_tokens / log_.trace.block_tokens);
  request.prompt_tokens = entry.prompt_tokens;
  for (const BlockHash& hash : entry.blocks) {
    request.last = numbering_.number(request.last, std::hash<BlockHash>{}(hash));
  }
  log_.trace.requests.push_back(request);
}

LogTrace LogTraceBuilder::take() {
  finish(log_.trace, numbering_);
  return std::move(log_);
}

Result<LogTrace> read_log_trace(const std::string& store, uint32_t block_tokens) {
  LogTraceBuilder builder(block_tokens);
  EMBER_TRY(visit_access_log(store, [&](const AccessEntry& entry) { builder.add(entry); }));
  return builder.take();
}

}  // namespace ember::replay
