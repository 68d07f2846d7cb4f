// Log trace: a store's own access log as a trace.
//
// Journey    access_log -> [log_trace] -> simulation
// Invariant  what an answer added is no part of what its request looked up; of a log, whatever its
//            length, 20 bytes a distinct block and 24 a request are held while it is read
// Threads    any, also beside the process that writes the log
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "prefix_index/journey.h"
#include "store/access_log.h"
#include "store/replay/trace.h"

namespace ember::replay {

struct LogTrace {
  Trace trace;  // times in seconds from the first request's end on
  int64_t first_unix_us = 0;
  int64_t last_unix_us = 0;
  // As it was: tokens of prompts that the store gave back, by tier, tails and all.
  std::array<uint64_t, kTierCount> restored_tokens{};
};

class LogTraceBuilder {
 public:
  // `block_tokens`: of the store's blocks.
  explicit LogTraceBuilder(uint32_t block_tokens) { log_.trace.block_tokens = block_tokens; }
  void add(const AccessEntry& entry);
  LogTrace take();

 private:
  LogTrace log_;
  BlockNumbering numbering_;
};

// Errors: as visit_access_log. A store without a log gives a trace without requests.
Result<LogTrace> read_log_trace(const std::string& store, uint32_t block_tokens);

}  // namespace ember::replay
