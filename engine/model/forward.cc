// Forward: embedding, layers, final norm, head and draws, as one program.
#include "engine/model/forward.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/model/activations.h"
#include "engine/model/layer_program.h"
#include "engine/model/step_inputs.h"

namespace ember {
namespace {

// Upper bounds of operations: the program's list grows once, at creation.
constexpr size_t kLayerOps = 23;
constexpr size_t kStepOps = 9;

class ModelForward final : public Forward {
 public:
  ModelForward(const ModelWeights& weights, const ForwardOptions& options,
               std::vector<LatentCacheView> views, uint32_t valid_vocab)
      : weights_(weights),
        options_(options),
        views_(std::move(views)),
        valid_vocab_(valid_vocab),
        inputs_(options, views_.front().block_tokens, weights.config.vocab_size) {}

  Status allocate(Device& device) {
    const ModelConfig& config = weights_.config;
    EMBER_TRY(inputs_.allocate(device));
    EMBER_ASSIGN(act_, allocate_activations(weights_, options_, device));
    EMBER_ASSIGN(rope_, device.allocate(options_.max_positions * config.rope_dim * sizeof(float)));
    fill_rope_table(config.inv_freq(), options_.max_positions, config.rope_amplitude(),
                    rope_.as<float>());
    for (LatentCacheView& view : views_) {
      view.block_tables = inputs_.on_device().tables;
      view.table_stride = options_.max_blocks;
    }
    step_.config = &config;
    step_.act = &act_;
    step_.in = inputs_.on_device();
    step_.rope_table = rope_.as<float>();
    step_.softmax_scale = config.softmax_scale();
    step_.precision = options_.precision;
    step_.program = &program_;
    if (options_.clock != nullptr) layer_times_us_.resize(config.layers + 1);
    program_.ops.reserve(config.layers * kLayerOps + kStepOps + options_.max_sequences);
    return {};
  }

  const Program& build(std::span<const StepSequence> sequences,
                       std::span<const Ticket> layer_waits) override {
    inputs_.fill(sequences);
    step_.rows = inputs_.rows();
    step_.absorb_rows = inputs_.absorb_rows();
    std::fill(layer_times_us_.begin(), layer_times_us_.end(), 0);
    program_.clear();
    program_.add(inputs_.upload());
    add_embedding();
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
      if (i < layer_waits.size() && layer_waits[i]) program_.add(WaitParams{layer_waits[i]});
      add_mark(i);
      add_layer(step_, weights_.layers[i], views_[i]);
    }
    add_mark(weights_.layers.size());
    if (inputs_.logit_rows() > 0) add_logits();
    if (inputs_.samples() > 0) add_samples();
    return program_;
  }

  std::span<const float> logits() const override {
    return {act_.logits_down.as<float>(), inputs_.logit_rows() * weights_.config.vocab_size};
  }
  std::span<const int32_t> sampled() const override {
    return {act_.sampled_down.as<int32_t>(), inputs_.samples()};
  }
  std::span<const int64_t> layer_times_us() const override { return layer_times_us_; }

 private:
  void add_mark(size_t layer) {
    if (!layer_times_us_.empty()) program_.add(MarkParams{options_.clock, &layer_times_us_[layer]});
  }

  void add_embedding() {
    GatherRowsParams gather;
    gather.rows = step_.rows;
    gather.width = weights_.embedding.cols;
    gather.ids = step_.in.ids;
    gather.table_rows = weights_.embedding.rows;
    gather.table = weights_.embedding.data;
    gather.table_dtype = weights_.embedding.dtype;
    gather.out = act_.hidden.data();
    gather.out_dtype = options_.precision;
    program_.add(gather);
  }

  // Final norm and head, for the chosen rows only.
  void add_logits() {
    GatherRowsParams gather;
    gather.rows = inputs_.logit_rows();
    gather.width = weights_.config.hidden;
    gather.ids = step_.in.logit_rows;
    gather.table_rows = options_.max_rows;
    gather.table = act_.hidden.data();
    gather.table_dtype = options_.precision;
    gather.out = act_.last_hidden.data();
    gather.out_dtype = options_.precision;
    program_.add(gather);
    StepContext last = step_;
    last.rows = inputs_.logit_rows();
    last.absorb_rows = last.rows;  // few, whatever they come from
    program_.add(norm_op(last, act_.last_hidden.data(), weights_.final_norm,
                         weights_.config.norm_eps, act_.last_normed.data()));
    program_.add(
        linear_op(last, act_.last_normed.data(), weights_.head, act_.logits.data(), DType::kF32));
    program_.add(BlockCopyParams{act_.logits.data(), act_.logits_down.data(),
                                 last.rows * weights_.config.vocab_size * sizeof(float)});
  }

  void add_samples() {
    for (const SampleRun& run : inputs_.sample_runs()) {
      SampleParams sample;
      sample.rows = run.count;
      sample.vocab = weights_.config.vocab_size;
      sample.valid_vocab = valid_vocab_;
      sample.logits = act_.logits.as<float>() + run.first_logit_row * sample.vocab;
      sample.temperatures = step_.in.temperatures + run.first_sample;
      sample.seeds = step_.in.seeds + run.first_sample;
      sample.positions = step_.in.sample_positions + run.first_sample;
      sample.ids = act_.sampled.as<int32_t>() + run.first_sample;
      program_.add(sample);
    }
    program_.add(BlockCopyParams{act_.sampled.data(), act_.sampled_down.data(),
                                 inputs_.samples() * sizeof(int32_t)});
  }

  const ModelWeights& weights_;
  ForwardOptions options_;
  std::vector<LatentCacheView> views_;
  uint32_t valid_vocab_;
  StepInputs inputs_;
  Activations act_;
  Buffer rope_;
  StepContext step_;
  std::vector<int64_t> layer_times_us_;
  Program program_;
};

}  // namespace

Result<std::unique_ptr<Forward>> Forward::create(const ModelWeights& weights,
                                                 const ForwardOptions& options,
                                                 std::vector<LatentCacheView> layer_views,
                                                 uint32_t valid_vocab, Device& device) {
  EMBER_CHECK(layer_views.size() == weights.layers.size() && !layer_views.empty(),
              "one cache view a layer");
  EMBER_CHECK(options.max_rows > 0 && options.max_sequences > 0 && options.max_blocks > 0 &&
                  options.max_positions > 0,
              "a step's limits are at least 1");
  EMBER_CHECK(valid_vocab > 0 && valid_vocab <= weights.config.vocab_size,
              "valid_vocab lies within the vocabulary");
  for (const LatentCacheView& view : layer_views) {
    EMBER_CHECK(view.dtype == options.precision || view.dtype == DType::kF8E4M3,
                "cached rows have the precision of the step, or are fp8");
  }
  auto forward =
      std::make_unique<ModelForward>(weights, options, std::move(layer_views), valid_vocab);
  EMBER_TRY(forward->allocate(device));
  return std::unique_ptr<Forward>(std::move(forward));
}

}  // namespace ember
