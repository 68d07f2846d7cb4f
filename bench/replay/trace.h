// Trace: public serving traces as requests for chains of blocks.
//
// Formats    one JSON object a line, plain or gzip: a request with `timestamp` (ms) and `hash_ids`
//            (Mooncake, ShareGPT), or a session with `requests` and their `hash_runs` (Weka), whose
//            start comes from a CSV of session, start within 24 h, start within 6 h
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ember::replay {

// A block by number: one for each pair of (block before it, id).
using BlockNumber = uint32_t;

struct Request {
  double at_s = 0;
  std::vector<BlockNumber> chain;  // root first
};

struct Trace {
  uint32_t block_tokens = 0;
  std::vector<Request> requests;  // in order of time
  size_t blocks = 0;              // distinct ones: the footprint
  uint64_t references = 0;        // blocks of all requests
  size_t longest = 0;             // blocks of the longest request
};

struct TraceFiles {
  std::string path;
  std::string starts;          // of sessions; empty for traces of requests
  std::string window = "24h";  // or "6h": which column of `starts`
};

// Errors: kIo, kInvalidArgument naming the file, the line and the field.
Result<Trace> read_trace(const TraceFiles& files);

}  // namespace ember::replay
