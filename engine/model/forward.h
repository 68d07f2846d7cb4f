// Forward: one step of the model as a program of kernel operations, written once for every device.
//
// Journey    tokens + block tables -> [forward] -> program -> logits, sampled ids, new latents
// Owns       the activations and step inputs, sized for max_rows tokens a step
// Invariant  building a step allocates nothing; a token's results depend on its own prefix and on
//            the attention form alone (not on how the prompt was cut in steps or on what else is in
//            the step)
// Threads    engine thread; one step in flight at a time
// Source     DeepSeek-V2 and V3 papers; engine/model/reference_forward.h is the plain form
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/model/weights.h"
#include "kernels/device.h"
#include "kernels/latent_attention.h"
#include "kernels/program.h"

namespace ember {

class Clock;

struct ForwardOptions {
  // Of activations, and of cached rows that are not fp8 (the views say so): kBf16 or kF32.
  DType precision = DType::kBf16;
  AttentionForm attention = AttentionForm::kAbsorb;
  bool both_forms = false;  // a sequence may ask for the other form
  const Clock* clock = nullptr;  // not null: when each layer begins is noted by it
  size_t max_rows = 256;  // tokens a step
  size_t max_sequences = 8;
  size_t max_blocks = 0;      // of one sequence: table stride
  size_t max_logit_rows = 8;  // rows a step that get logits
  size_t max_positions = 0;   // of the RoPE table
};

// One sequence's part of a step.
struct StepSequence {
  std::span<const int32_t> tokens;  // ids at positions first_position ..
  int32_t first_position = 0;
  std::span<const int32_t> block_table;  // slots; covers first_position + tokens.size() tokens
  size_t logit_rows = 0;                 // of the last tokens, how many get logits (0: none)
  bool sample = false;                   // draw the next token from the last row (logit_rows >= 1)
  float temperature = 0;
  uint64_t seed = 0;
  // Absent: as in the options. Those with kNaive stand behind those with kAbsorb.
  std::optional<AttentionForm> form = {};
};

class Forward {
 public:
  // `layer_views`: where each layer's rows are (BlockCache::layer_view); tables are set here.
  static Result<std::unique_ptr<Forward>> create(const ModelWeights& weights,
                                                 const ForwardOptions& options,
                                                 std::vector<LatentCacheView> layer_views,
                                                 uint32_t valid_vocab, Device& device);
  virtual ~Forward() = default;

  // Builds the step's program; it and the inputs are valid until the next call. Misuse (more rows
  // than max_rows, a table too short) aborts.
  // `layer_waits`, where given: a ticket for each layer (0: none) without whose success the layer
  // does not begin; one that fails ends the step.
  virtual const Program& build(std::span<const StepSequence> sequences,
                               std::span<const Ticket> layer_waits = {}) = 0;

  // After the step's ticket completed: logits [logit rows of the step, vocab] in the order of the
  // sequences, and the drawn ids, one for each sequence with `sample`, in order.
  virtual std::span<const float> logits() const = 0;
  virtual std::span<const int32_t> sampled() const = 0;
  // When each layer of that step began, and when the last one ended [layers + 1]; empty without a
  // clock, and what a failed step did not reach is 0.
  virtual std::span<const int64_t> layer_times_us() const = 0;
};

}  // namespace ember
