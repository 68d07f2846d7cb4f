// simulate: what other capacities and policies would have made of the requests of the past.
//
// Journey    access_log or a trace -> [simulate] -> simulation -> a table, JSON, a plot
// Invariant  reads only, also beside the process that holds the store: the log is read as it lies,
//            and all work is this process's
// Threads    the command's
// Not here   the simulation (store/replay/simulation.h), which capacities (simulate_plan.h)
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "prefix_index/duel.h"
#include "store/replay/public_trace.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/simulate_plan.h"

namespace ember {

struct SimulateOptions {
  StoreChoice store;
  replay::TraceFiles trace;               // path empty: the store's access log
  std::vector<CapacityAsked> capacities;  // none: around the present one
  std::vector<EvictionPolicy> policies = {EvictionPolicy::kAuto, EvictionPolicy::kLeafLru,
                                          EvictionPolicy::kS3Fifo};
  uint64_t block_bytes = 0;  // of a trace's blocks, as stored; 0: sizes are not known
  std::string plot;          // an SVG picture is written there
  bool json = false;
};

// Errors: those of opening the store and of the trace; kInvalidArgument (no log, or none that tells
// anything; capacities); kCancelled; kIo naming the plot's file.
Result<int> run_simulate(const SimulateOptions& options, CommandContext& context);

}  // namespace ember
