// Public traces: serving traces that others have published, as requests for chains of blocks.
//
// Journey    a file of JSON lines -> [public_trace] -> trace
// Formats    one JSON object a line, plain or gzip: a request with `timestamp` (ms) and `hash_ids`
//            (Mooncake, ShareGPT), or a session with `requests` and their `hash_runs` (Weka), whose
//            start comes from a CSV of session, start within 24 h, start within 6 h
// Threads    any
#pragma once

#include <string>

#include "base/result.h"
#include "store/replay/trace.h"

namespace ember::replay {

struct TraceFiles {
  std::string path;
  std::string starts;          // of sessions; empty for traces of requests
  std::string window = "24h";  // or "6h": which column of `starts`
};

// Requests are in order of time; all blocks of one are looked up.
// Errors: kIo, kInvalidArgument naming the file, the line and the field.
Result<Trace> read_trace(const TraceFiles& files);

}  // namespace ember::replay
