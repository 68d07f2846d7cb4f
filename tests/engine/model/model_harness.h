// Model harness: a checkpoint folder, a block pool and a forward pass in one hand, for tests.
//
// Journey    tokens -> [model_harness] -> logits and cached rows of every layer
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/model/forward.h"
#include "engine/model/weights.h"
#include "kernels/device.h"
#include "store/kv_layout.h"

namespace ember::testing {

using Tokens = std::vector<int32_t>;

struct ModelRun {
  std::vector<float> logits;                 // [T, vocab]
  std::vector<std::vector<std::byte>> rows;  // per layer: [T] cached rows
  friend bool operator==(const ModelRun&, const ModelRun&) = default;
};

struct HarnessOptions {
  int workers = 2;
  WeightForm weights = WeightForm::kStored;
  bool fp8_cache = false;
};

class ModelHarness {
 public:
  // Aborts the test program when the model can not be loaded: its files are the tests' own.
  ModelHarness(const std::string& folder, DType precision, AttentionForm form, int workers = 2)
      : ModelHarness(folder, precision, form, HarnessOptions{.workers = workers}) {}
  ModelHarness(const std::string& folder, DType precision, AttentionForm form,
               const HarnessOptions& options);

  const ModelConfig& config() const { return weights_->config; }
  const ModelWeights& weights() const { return *weights_; }
  Forward& forward() { return *forward_; }
  std::span<const int32_t> table(size_t sequence) const { return tables_[sequence]; }

  // The whole prompt in steps of `chunk` tokens (0: one step).
  ModelRun run(const Tokens& tokens, size_t chunk);
  // All prompts together: each step takes `chunk` tokens of every unfinished one, in the order
  // given.
  std::vector<ModelRun> run_together(const std::vector<Tokens>& prompts, size_t chunk);
  // Prefill, then `count` greedy tokens, a step each.
  Tokens greedy(const Tokens& prompt, size_t count);
  // One step over all prompts with so many logit rows each; the drawn ids.
  Tokens draw_together(const std::vector<Tokens>& prompts, const std::vector<size_t>& logit_rows,
                       const std::vector<bool>& sample);

 private:
  void step(std::span<const StepSequence> sequences);
  ModelRun collect(size_t sequence, size_t tokens, std::vector<float> logits) const;

  std::unique_ptr<Device> device_;
  std::unique_ptr<ModelWeights> weights_;
  KvLayout layout_;
  Buffer pool_;
  std::vector<std::vector<int32_t>> tables_;
  std::unique_ptr<Forward> forward_;
};

// Random token ids below `vocab`.
Tokens random_tokens(uint64_t seed, size_t count, uint32_t vocab);

// A tensor of a file of expected values, as T.
template <typename T>
std::vector<T> expected_values(const SafetensorsFile& file, const std::string& name) {
  const ConstBytes bytes = file.tensors().at(name).bytes;
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The largest difference of any row over the largest value of the row.
double worst_row_error(std::span<const float> found, std::span<const float> expected, size_t width);
// The median over rows of ||found - expected|| / ||expected||.
double median_row_error(std::span<const float> found, std::span<const float> expected,
                        size_t width);

}  // namespace ember::testing
