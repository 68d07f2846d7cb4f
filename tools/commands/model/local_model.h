// Local model: a model run from token ids to logits, with a block pool of its own and no store.
//
// Journey    token ids -> [local_model] -> model forward -> logits of every position
// Owns       device, weights, and for each run a pool just large enough for its ids
// Threads    main
// Not here   tokenizer, scheduler, cache (engine/runtime)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "engine/model/weights.h"
#include "kernels/latent_attention.h"

namespace ember {

struct LocalModelOptions {
  std::string model;        // checkpoint folder
  std::string config_path;  // empty: the folder's config.json
  AttentionForm attention = AttentionForm::kAbsorb;
  DType precision = DType::kBf16;    // of activations: kBf16 or kF32
  std::optional<DType> cache_dtype;  // of cached rows: absent as `precision`, or kF8E4M3
  WeightForm weights = WeightForm::kStored;
  int workers = 0;  // 0: one for each core
};

class LocalModel {
 public:
  // Errors: of config and checkpoint.
  static Result<std::unique_ptr<LocalModel>> open(const LocalModelOptions& options);
  virtual ~LocalModel() = default;

  virtual const ModelConfig& config() const = 0;
  // From position 0 on, in steps: take(first position, logits [rows, vocab]) for each. At most
  // config().max_positions ids. Errors: of the device and of `take`.
  using Take = std::function<Status(size_t first, std::span<const float> logits)>;
  virtual Status run(std::span<const int32_t> ids, const Take& take) = 0;
};

}  // namespace ember
