// Step rig: single steps of a model at any position, and parts of them alone, each timed.
//
// Journey    model folder -> [step_rig] -> engine_bench
// Owns       device, weights, forward, and a pool of made-up rows in place of a computed prefix
// Invariant  a part alone is made of the step's own operations, with the same weights and places
// Threads    one
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/checkpoint/model_config.h"
#include "engine/model/attention_mode.h"

namespace ember {

struct StepRigOptions {
  std::string model;
  int workers = 0;  // 0: every core
  AttentionMode attention = AttentionMode::kAuto;  // kAuto: rows together are of a long prompt
  size_t positions = 8192;  // of the one sequence
  size_t max_rows = 256;    // tokens a step
};

struct StepCost {
  double seconds = 0;
  double flop = 0;   // of matrix products and attention
  double bytes = 0;  // of weights and cached rows that must be read, each once
};

class StepRig {
 public:
  static Result<std::unique_ptr<StepRig>> open(const StepRigOptions& options);
  virtual ~StepRig() = default;

  virtual const ModelConfig& config() const = 0;
  virtual int workers() const = 0;
  // The best of `tries` steps of `rows` tokens of which the last has position end - 1.
  virtual StepCost step(size_t rows, size_t end, int tries) = 0;
  // Of such a step the attention operations alone; flop are those of the pairs.
  virtual StepCost attention(size_t rows, size_t end, int tries) = 0;
  // Its matrix products alone; each expert has the mean number of rows.
  virtual StepCost matmuls(size_t rows, size_t end, int tries) = 0;
};

// (query, key) pairs of such a step in one layer.
double attention_pairs(size_t rows, size_t end);

}  // namespace ember
