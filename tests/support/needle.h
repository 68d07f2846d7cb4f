// Needle: facts planted in a long handbook, asked by the run that has just read it, after a restore
// from host RAM, and after one from disk in a store that was closed and opened again.
//
// Journey    needle_context -> [needle] -> engine (device, host, disk) -> answers by depth, length
// Invariant  restores are real: an answer counts as restored only where the whole context came from
//            the tier it is asked from
// Threads    engine thread
// Not here   what is good enough (tests/journey/needle_test.cc), tables (bench/needle.cc)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace ember {

struct NeedleOptions {
  std::string model_path;
  std::string store_path;  // a folder that is absent
  DType cache_dtype = DType::kBf16;
  std::vector<size_t> lengths;  // of context, question and answer together, in tokens
  size_t depths = 10;
  size_t contexts = 1;  // of each length
  uint64_t seed = 1;
  int workers = 0;  // 0: every core
  std::function<void(double done)> progress;  // may be empty; in [0, 1]
};

// The facts at one depth of contexts of one length.
struct NeedleCell {
  size_t length = 0;
  size_t depth = 0;
  size_t asked = 0;
  size_t right = 0;           // the value stands in the answer of the uninterrupted run
  size_t host_differs = 0;    // the ids of the answer are not those of the uninterrupted run
  size_t disk_differs = 0;
  size_t cold_asked = 0;      // asked without any cache too: the first question of a context
  size_t cold_differs = 0;
  size_t host_restored = 0;   // questions whose whole context came from host RAM
  size_t disk_restored = 0;   // from disk
};

struct NeedleResult {
  std::vector<NeedleCell> cells;  // by length, then by depth
  uint64_t token_bytes = 0;       // of the cache
  std::vector<std::string> texts;  // each context with its questions and right answers, as a chat
  NeedleCell total() const;
};

// Errors: of model and store; kInvalidArgument for a length that the model does not have.
Result<NeedleResult> run_needle(const NeedleOptions& options);

}  // namespace ember
