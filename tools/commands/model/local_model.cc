// Local model: prefill in steps, every row with its logits.
#include "tools/commands/model/local_model.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/forward.h"
#include "engine/model/identity.h"
#include "kernels/device.h"
#include "prefix_index/token.h"

namespace ember {
namespace {

constexpr size_t kMaxStepRows = 256;
constexpr size_t kMaxStepLogitBytes = size_t{64} << 20;

Status wait_for(Device& device, Ticket ticket) {
  std::array<Completion, 4> done;
  while (true) {
    const size_t count = device.wait_any(std::numeric_limits<int64_t>::max(), done);
    for (size_t i = 0; i < count; ++i) {
      if (done[i].ticket == ticket) return done[i].status;
    }
  }
}

// Just the blocks that the ids need: block i of the sequence lies in slot i.
struct LocalPool {
  Buffer memory;
  std::vector<LatentCacheView> views;
  std::vector<int32_t> table;
};

Result<LocalPool> make_pool(const ModelConfig& config, DType cache_dtype, size_t tokens,
                            Device& device) {
  const KvLayout layout = model_kv_layout(config, cache_dtype, kDefaultBlockTokens, 0);
  const size_t blocks = (tokens + layout.block_tokens() - 1) / layout.block_tokens();
  LocalPool pool;
  EMBER_ASSIGN(pool.memory, device.allocate(blocks * layout.block_bytes()));
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    LatentCacheView view;
    view.pool = pool.memory.bytes();
    view.slot_bytes = layout.block_bytes();
    view.layer_offset = layout.layer_offset(layer);
    view.row_bytes = layout.row_bytes();
    view.dtype = cache_dtype;
    view.block_tokens = layout.block_tokens();
    pool.views.push_back(view);
  }
  for (size_t i = 0; i < blocks; ++i) pool.table.push_back(static_cast<int32_t>(i));
  return pool;
}

class LocalModelImpl final : public LocalModel {
 public:
  explicit LocalModelImpl(LocalModelOptions options) : options_(std::move(options)) {}

  Status load() {
    EMBER_ASSIGN(const ModelConfig config, options_.config_path.empty()
                                               ? load_model_config(options_.model)
                                               : load_model_config_file(options_.config_path));
    EMBER_ASSIGN(std::shared_ptr<Checkpoint> checkpoint, Checkpoint::open(options_.model));
    device_ = make_cpu_device({.workers = options_.workers});
    EMBER_ASSIGN(weights_, load_weights(std::move(checkpoint), config, options_.precision, *device_,
                                        {}, options_.weights));
    return {};
  }

  const ModelConfig& config() const override { return weights_->config; }

  Status run(std::span<const int32_t> ids, const Take& take) override {
    EMBER_CHECK(!ids.empty() && ids.size() <= config().max_positions, "ids fit the model");
    const DType cache_dtype = options_.cache_dtype.value_or(options_.precision);
    EMBER_ASSIGN(const LocalPool pool, make_pool(config(), cache_dtype, ids.size(), *device_));
    const ForwardOptions step = step_options(pool, ids.size());
    EMBER_ASSIGN(const std::unique_ptr<Forward> forward,
                 Forward::create(*weights_, step, pool.views, config().vocab_size, *device_));
    for (size_t first = 0; first < ids.size(); first += step.max_rows) {
      const size_t rows = std::min(step.max_rows, ids.size() - first);
      StepSequence sequence;
      sequence.tokens = ids.subspan(first, rows);
      sequence.first_position = static_cast<int32_t>(first);
      sequence.block_table = pool.table;
      sequence.logit_rows = rows;
      EMBER_TRY(wait_for(*device_, device_->submit(forward->build({&sequence, 1}))));
      EMBER_TRY(take(first, forward->logits()));
    }
    return {};
  }

 private:
  ForwardOptions step_options(const LocalPool& pool, size_t tokens) const {
    const size_t row_bytes = config().vocab_size * sizeof(float);
    const size_t rows = std::clamp<size_t>(kMaxStepLogitBytes / row_bytes, 1, kMaxStepRows);
    ForwardOptions forward;
    forward.precision = options_.precision;
    forward.attention = options_.attention;
    forward.max_rows = std::min(rows, tokens);
    forward.max_sequences = 1;
    forward.max_blocks = pool.table.size();
    forward.max_logit_rows = forward.max_rows;
    forward.max_positions = tokens;
    return forward;
  }

  LocalModelOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ModelWeights> weights_;
};

}  // namespace

Result<std::unique_ptr<LocalModel>> LocalModel::open(const LocalModelOptions& options) {
  auto model = std::make_unique<LocalModelImpl>(options);
  EMBER_TRY(model->load());
  return std::unique_ptr<LocalModel>(std::move(model));
}

}  // namespace ember
