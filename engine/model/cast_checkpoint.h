// Cast: an fp8 checkpoint to bf16 and back, shard by shard.
//
// Journey    checkpoint folder -> [cast_checkpoint] -> checkpoint folder
// Invariant  memory is bounded by a band of 128 rows; the new folder appears whole or not at all;
//            an existing one is never touched
// Source     what DeepSeek's fp8_cast_bf16 does to names, files and index
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/dtype.h"
#include "base/result.h"

namespace ember {

struct CastOptions {
  std::string from;
  std::string to;
  DType dtype = DType::kBf16;  // kBf16: fp8 tensors are widened, their scales dropped. kF8E4M3:
                               // the linear layers get values and scales in blocks of 128 x 128
  bool power_of_two_scales = false;  // of kF8E4M3: scales are rounded up to powers of two (ue8m0)
  std::function<void(double)> progress;
};

struct CastReport {
  uint64_t tensors = 0;  // of the new checkpoint
  uint64_t cast = 0;     // of them cast
  uint64_t shards = 0;
};

// Errors: kInvalidArgument (`to` exists, nothing to cast, a weight without scales), kIo, and those
// of Checkpoint::open.
Result<CastReport> cast_checkpoint(const CastOptions& options);

}  // namespace ember
