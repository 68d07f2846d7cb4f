// plan: what a model would need, from its config alone.
//
// Journey    config.json -> [plan] -> parameters, bytes and what fits, on standard output
// Invariant  reads one file and no weights; with --json standard output is one object
// Threads    main
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "base/result.h"

namespace ember {

struct PlanOptions {
  std::string config;         // a file, or a folder that holds config.json
  uint64_t memory_bytes = 0;  // 0: this machine's
  bool json = false;
};

// Errors: those of the config.
Status run_plan(const PlanOptions& options, std::ostream& out);

}  // namespace ember
