// Builds a step with Forward, picks its operations by kind, and times them on the device.
#include "bench/step_rig.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/prng.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/forward.h"
#include "engine/model/identity.h"
#include "prefix_index/token.h"

namespace ember {
namespace {

double matmul_flop(const MatmulParams& m) {
  return 2.0 * static_cast<double>(m.batch * m.rows) * static_cast<double>(m.n * m.k);
}

double weight_bytes(const MatmulParams& m) {
  return static_cast<double>(m.batch * m.n * m.k * dtype_bytes(m.w_dtype));
}

// Adds what an expert operation multiplies, as plain products of `rows` rows an expert.
void add_expert_matmuls(const ExpertFfnParams& p, size_t rows, Program& program) {
  for (size_t e = 0; e < p.experts; ++e) {
    const ExpertWeights& w = p.weights[e];
    MatmulParams m;
    m.rows = rows;
    m.n = p.inner;
    m.k = p.width;
    m.x = p.x;
    m.x_dtype = p.dtype;
    m.x_stride = p.width;
    m.w = w.gate;
    m.w_dtype = p.w_dtype;
    m.w_scales = w.gate_scales;
    m.y = p.workspace;
    m.y_dtype = p.dtype;
    m.y_stride = p.inner;
    program.add(m);
    m.w = w.up;
    m.w_scales = w.up_scales;
    program.add(m);
    std::swap(m.n, m.k);
    m.x = p.workspace;
    m.x_stride = p.inner;
    m.w = w.down;
    m.w_scales = w.down_scales;
    m.y = p.y;
    m.y_stride = p.width;
    program.add(m);
  }
}

class StepRigImpl final : public StepRig {
 public:
  explicit StepRigImpl(const StepRigOptions& options) : options_(options) {}

  Status load() {
    EMBER_ASSIGN(const ModelConfig config, load_model_config(options_.model));
    EMBER_ASSIGN(std::shared_ptr<Checkpoint> checkpoint, Checkpoint::open(options_.model));
    device_ = make_cpu_device({.workers = options_.workers});
    EMBER_ASSIGN(weights_,
                 load_weights(std::move(checkpoint), config, DType::kBf16, *device_, {}));
    EMBER_TRY(make_pool());
    ForwardOptions forward;
    forward.both_forms = options_.attention == AttentionMode::kAuto;
    forward.attention = attention_form(options_.attention, kNaiveTokens, false);
    forward.max_rows = options_.max_rows;
    forward.max_sequences = 1;
    forward.max_blocks = table_.size();
    forward.max_logit_rows = 1;
    forward.max_positions = options_.positions;
    EMBER_ASSIGN(forward_, Forward::create(*weights_, forward, views_, config.vocab_size,
                                           *device_));
    return {};
  }

  const ModelConfig& config() const override { return weights_->config; }
  int workers() const override { return device_->worker_count(); }

  StepCost step(size_t rows, size_t end, int tries) override {
    return part(rows, end, tries, [](const Op& op, Program& program) { program.add(op); });
  }

  StepCost attention(size_t rows, size_t end, int tries) override {
    return part(rows, end, tries, [](const Op& op, Program& program) {
      const bool first = program.ops.empty();  // the step's inputs go up
      if (first || std::holds_alternative<LatentAttentionParams>(op)) program.add(op);
    });
  }

  StepCost matmuls(size_t rows, size_t end, int tries) override {
    return part(rows, end, tries, [](const Op& op, Program& program) {
      if (std::holds_alternative<MatmulParams>(op)) program.add(op);
      if (const auto* experts = std::get_if<ExpertFfnParams>(&op)) {
        const size_t pairs = experts->rows * experts->top_k;
        const size_t mean = std::max<size_t>((pairs + experts->experts / 2) / experts->experts, 1);
        add_expert_matmuls(*experts, mean, program);
      }
    });
  }

 private:
  // Times what `take` makes of each of the step's operations.
  template <typename Take>
  StepCost part(size_t rows, size_t end, int tries, Take take) {
    Program program;
    for (const Op& op : build(rows, end).ops) take(op, program);
    StepCost cost = timed(program, tries);
    for (const Op& op : program.ops) add_work(op, rows, end, cost);
    return cost;
  }

  // Rows of plausible size in every block; their values change no time.
  Status make_pool() {
    const KvLayout layout =
        model_kv_layout(config(), DType::kBf16, kDefaultBlockTokens, 0);
    const size_t blocks = (options_.positions + kDefaultBlockTokens - 1) / kDefaultBlockTokens;
    EMBER_ASSIGN(pool_, device_->allocate(blocks * layout.block_bytes()));
    Prng prng(5);
    std::vector<bf16> values(size_t{1} << 16);
    for (bf16& value : values) value = to_bf16(static_cast<float>(prng.uniform() - 0.5));
    const size_t piece = values.size() * sizeof(bf16);
    for (size_t at = 0; at < blocks * layout.block_bytes(); at += piece) {
      std::memcpy(pool_.bytes() + at, values.data(),
                  std::min(piece, blocks * layout.block_bytes() - at));
    }
    for (uint32_t layer = 0; layer < config().layers; ++layer) {
      LatentCacheView view;
      view.pool = pool_.bytes();
      view.slot_bytes = layout.block_bytes();
      view.layer_offset = layout.layer_offset(layer);
      view.row_bytes = layout.row_bytes();
      view.block_tokens = layout.block_tokens();
      views_.push_back(view);
    }
    for (size_t i = 0; i < blocks; ++i) table_.push_back(static_cast<int32_t>(i));
    return {};
  }

  const Program& build(size_t rows, size_t end) {
    EMBER_CHECK(rows <= end && end <= options_.positions, "the step lies within the sequence");
    Prng prng(end);
    tokens_.resize(rows);
    for (int32_t& id : tokens_) id = static_cast<int32_t>(prng.below(config().vocab_size));
    StepSequence sequence;
    sequence.tokens = tokens_;
    sequence.first_position = static_cast<int32_t>(end - rows);
    sequence.block_table = table_;
    sequence.logit_rows = 1;
    sequence.form = attention_form(options_.attention, kNaiveTokens, rows == 1);
    return forward_->build({&sequence, 1});
  }

  void add_work(const Op& op, size_t rows, size_t end, StepCost& cost) const {
    if (const auto* m = std::get_if<MatmulParams>(&op)) {
      cost.flop += matmul_flop(*m);
      cost.bytes += weight_bytes(*m);
    } else if (const auto* e = std::get_if<ExpertFfnParams>(&op)) {
      const size_t pairs = e->rows * e->top_k;
      const auto expert = static_cast<double>(3 * e->width * e->inner);
      cost.flop += 2 * static_cast<double>(pairs) * expert;
      cost.bytes += static_cast<double>(std::min(pairs, e->experts)) * expert *
                    static_cast<double>(dtype_bytes(e->w_dtype));
    } else if (const auto* r = std::get_if<ExpertRouteParams>(&op)) {
      cost.flop += 2.0 * static_cast<double>(r->rows * r->experts * r->width);
      cost.bytes += static_cast<double>(r->experts * r->width * dtype_bytes(r->w_dtype));
    } else if (const auto* a = std::get_if<LatentAttentionParams>(&op)) {
      const bool absorb = a->form == AttentionForm::kAbsorb;
      const size_t pair = absorb ? 2 * a->latent_dim + a->rope_dim
                                 : a->nope_dim + a->rope_dim + a->value_dim;
      cost.flop += attention_pairs(rows, end) * 2 * static_cast<double>(pair * a->heads);
      cost.bytes += static_cast<double>(end * a->cache.row_bytes);
      if (absorb) return;
      // Naive: the keys and values of every row are made at least once.
      const size_t expanded = a->heads * (a->nope_dim + a->value_dim) * a->latent_dim;
      cost.flop += 2 * static_cast<double>(end * expanded);
      cost.bytes += static_cast<double>(expanded * dtype_bytes(a->w_dtype));
    }
  }

  StepCost timed(const Program& program, int tries) {
    StepCost cost;
    cost.seconds = std::numeric_limits<double>::max();
    for (int i = 0; i < tries; ++i) {
      const int64_t start = system_clock().now_us();
      run(program);
      cost.seconds =
          std::min(cost.seconds, static_cast<double>(system_clock().now_us() - start) * 1e-6);
    }
    return cost;
  }

  void run(const Program& program) {
    std::array<Completion, 4> done;
    const Ticket ticket = device_->submit(program);
    while (true) {
      const size_t count = device_->wait_any(std::numeric_limits<int64_t>::max(), done);
      for (size_t i = 0; i < count; ++i) {
        if (done[i].ticket != ticket) continue;
        EMBER_CHECK(done[i].status.ok(), "the step is computed");
        return;
      }
    }
  }

  StepRigOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ModelWeights> weights_;
  Buffer pool_;
  std::vector<LatentCacheView> views_;
  std::vector<int32_t> table_;
  std::vector<int32_t> tokens_;
  std::unique_ptr<Forward> forward_;
};

}  // namespace

double attention_pairs(size_t rows, size_t end) {
  const auto last = static_cast<double>(end);
  const auto count = static_cast<double>(rows);
  return count * (last - (count - 1) / 2);
}

Result<std::unique_ptr<StepRig>> StepRig::open(const StepRigOptions& options) {
  auto rig = std::make_unique<StepRigImpl>(options);
  EMBER_TRY(rig->load());
  return std::unique_ptr<StepRig>(std::move(rig));
}

}  // namespace ember
