// Checkpoint: a model's folder as named tensors, mapped, sharded or not; and its fingerprint.
//
// Journey    folder -> [checkpoint] -> model/weights
// Owns       the mapped files
// Invariant  tensors are found through the index's weight_map only (or in model.safetensors alone,
//            or in model0-mp1.safetensors of DeepSeek's convert.py, whose names are turned back)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/safetensors.h"
#include "prefix_index/block_hash.h"

namespace ember {

class Checkpoint {
 public:
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& folder);
  virtual ~Checkpoint() = default;
  // Errors: kInvalidArgument naming the tensor that is missing or whose shape differs, with both
  // shapes; kUnsupported for a dtype that holds no numbers with a fraction.
  virtual Result<TensorView> tensor(const std::string& name,
                                    const std::vector<size_t>& shape) const = 0;
  virtual bool has(const std::string& name) const = 0;
  virtual std::vector<std::string> names() const = 0;
  virtual uint64_t total_bytes() const = 0;
  // The tensors by the file that holds them, files in order of name; a single file too.
  virtual std::map<std::string, std::vector<std::string>> shards() const = 0;
  virtual bool has_index() const = 0;
  // A tensor of any dtype and shape. Errors: kInvalidArgument where it is missing.
  virtual Result<TensorView> any_tensor(const std::string& name) const = 0;
  // XXH3-128 over names, dtypes, shapes and bytes in order of name: the same however it is sharded.
  // Reads all weights, unless they were fingerprinted before and the files' size, inode, times and
  // sampled bytes are unchanged (remembered in $XDG_CACHE_HOME/emberkv, or ~/.cache/emberkv).
  virtual Result<BlockHash> fingerprint(const std::function<void(double)>& progress) const = 0;
};

}  // namespace ember
