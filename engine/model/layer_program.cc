// Layer program: MLA in both forms, dense and expert feed-forwards.
#include "engine/model/layer_program.h"

namespace ember {
namespace {

// Queries and mixed latents stay fp32 in every precision: they are read once and stored nowhere,
// and rounding them to bf16 would be most of the absorbed form's error.
constexpr DType kQueryDtype = DType::kF32;

void add_residual(const StepContext& step) {
  ResidualAddParams add;
  add.count = step.rows * step.config->hidden;
  add.h = step.act->hidden.data();
  add.x = step.act->branch.data();
  add.dtype = step.precision;
  step.program->add(add);
}

void add_query(const StepContext& step, const LayerWeights& layer) {
  const ModelConfig& c = *step.config;
  const Activations& act = *step.act;
  if (c.q_lora_rank == 0) {
    step.program->add(linear_op(step, act.normed.data(), layer.q, act.query.data(), kQueryDtype));
  } else {
    step.program->add(
        linear_op(step, act.normed.data(), layer.q_a, act.query_low.data(), step.precision));
    step.program->add(norm_op(step, act.query_low.data(), layer.q_a_norm, c.inner_norm_eps,
                              act.query_low_normed.data()));
    step.program->add(
        linear_op(step, act.query_low_normed.data(), layer.q_b, act.query.data(), kQueryDtype));
  }
  const size_t head_dim = size_t{c.nope_dim} + c.rope_dim;
  RopeParams rope;
  rope.rows = step.rows;
  rope.heads = c.heads;
  rope.rope_dim = c.rope_dim;
  rope.x = act.query.bytes() + c.nope_dim * dtype_bytes(kQueryDtype);
  rope.x_stride = c.heads * head_dim;
  rope.head_stride = head_dim;
  rope.dtype = kQueryDtype;
  rope.positions = step.in.positions;
  rope.table = step.rope_table;
  step.program->add(rope);
}

// The rows that are cached, made from the normed hidden state and written to the block pool.
void add_latent(const StepContext& step, const LayerWeights& layer, const LatentCacheView& cache) {
  const ModelConfig& c = *step.config;
  step.program->add(
      linear_op(step, step.act->normed.data(), layer.kv_a, step.act->latent.data(), DType::kF32));
  LatentPackParams pack;
  pack.rows = step.rows;
  pack.latent_dim = c.kv_lora_rank;
  pack.rope_dim = c.rope_dim;
  pack.u = step.act->latent.data();
  pack.u_dtype = DType::kF32;
  pack.norm_weight = layer.kv_a_norm.data;
  pack.norm_dtype = layer.kv_a_norm.dtype;
  pack.eps = c.inner_norm_eps;
  pack.rope_table = step.rope_table;
  pack.positions = step.in.positions;
  pack.sequences = step.in.sequences;
  pack.cache = cache;
  step.program->add(pack);
}

// For the rows from `first` on.
LatentAttentionParams attention_op(const StepContext& step, const LatentCacheView& cache,
                                   size_t first, size_t rows) {
  const ModelConfig& c = *step.config;
  const size_t query_bytes =
      c.heads * (size_t{c.nope_dim} + c.rope_dim) * dtype_bytes(kQueryDtype);
  LatentAttentionParams attention;
  attention.rows = rows;
  attention.heads = c.heads;
  attention.nope_dim = c.nope_dim;
  attention.rope_dim = c.rope_dim;
  attention.value_dim = c.value_dim;
  attention.latent_dim = c.kv_lora_rank;
  attention.scale = step.softmax_scale;
  attention.q = step.act->query.bytes() + first * query_bytes;
  attention.q_dtype = kQueryDtype;
  attention.positions = step.in.positions + first;
  attention.sequences = step.in.sequences + first;
  attention.cache = cache;
  return attention;
}

// q_latent[t, h] = W_UK[h]^T q_nope[t, h]: one product a head.
MatmulParams key_absorb_op(const StepContext& step, const LayerWeights& layer) {
  const ModelConfig& c = *step.config;
  const size_t head_dim = size_t{c.nope_dim} + c.rope_dim;
  MatmulParams m;
  m.batch = c.heads;
  m.rows = step.absorb_rows;
  m.n = c.kv_lora_rank;
  m.k = c.nope_dim;
  m.x = step.act->query.data();
  m.x_dtype = kQueryDtype;
  m.x_stride = c.heads * head_dim;
  m.x_batch_stride = head_dim;
  m.w = layer.key_absorb.data;
  m.w_dtype = layer.key_absorb.dtype;
  m.w_batch_stride = m.n * m.k;
  m.y = step.act->query_latent.data();
  m.y_dtype = kQueryDtype;
  m.y_stride = c.heads * m.n;
  m.y_batch_stride = m.n;
  return m;
}

// values[t, h] = W_UV[h] o_latent[t, h]; W_UV[h] is rows N .. N + V - 1 of the head in kv_b.
MatmulParams value_op(const StepContext& step, const LayerWeights& layer) {
  const ModelConfig& c = *step.config;
  MatmulParams m;
  m.batch = c.heads;
  m.rows = step.absorb_rows;
  m.n = c.value_dim;
  m.k = c.kv_lora_rank;
  m.x = step.act->mixed_latent.data();
  m.x_dtype = kQueryDtype;
  m.x_stride = c.heads * m.k;
  m.x_batch_stride = m.k;
  m.w = static_cast<const std::byte*>(layer.kv_b.data) +
        size_t{c.nope_dim} * m.k * dtype_bytes(layer.kv_b.dtype);
  m.w_dtype = layer.kv_b.dtype;
  m.w_batch_stride = (size_t{c.nope_dim} + c.value_dim) * m.k;
  m.y = step.act->values.data();
  m.y_dtype = step.precision;
  m.y_stride = c.heads * m.n;
  m.y_batch_stride = m.n;
  return m;
}

void add_absorbed(const StepContext& step, const LayerWeights& layer,
                  const LatentCacheView& cache) {
  LatentAttentionParams attention = attention_op(step, cache, 0, step.absorb_rows);
  attention.form = AttentionForm::kAbsorb;
  attention.q_latent = step.act->query_latent.data();
  attention.out = step.act->mixed_latent.data();
  attention.out_dtype = kQueryDtype;
  step.program->add(key_absorb_op(step, layer));
  step.program->add(attention);
  step.program->add(value_op(step, layer));
}

void add_naive(const StepContext& step, const LayerWeights& layer, const LatentCacheView& cache) {
  const ModelConfig& c = *step.config;
  const size_t first = step.absorb_rows;
  LatentAttentionParams attention = attention_op(step, cache, first, step.rows - first);
  attention.form = AttentionForm::kNaive;
  attention.w_kv_b = layer.kv_b.data;
  attention.w_dtype = layer.kv_b.dtype;
  attention.out = step.act->values.bytes() +
                  first * c.heads * size_t{c.value_dim} * dtype_bytes(step.precision);
  attention.out_dtype = step.precision;
  step.program->add(attention);
}

void add_attention(const StepContext& step, const LayerWeights& layer,
                   const LatentCacheView& cache) {
  const Activations& act = *step.act;
  step.program->add(norm_op(step, act.hidden.data(), layer.attention_norm, step.config->norm_eps,
                            act.normed.data()));
  add_query(step, layer);
  add_latent(step, layer, cache);
  if (step.absorb_rows > 0) add_absorbed(step, layer, cache);
  if (step.absorb_rows < step.rows) add_naive(step, layer, cache);
  step.program->add(linear_op(step, act.values.data(), layer.o, act.branch.data(), step.precision));
  add_residual(step);
}

// The dense feed-forward, or the shared expert: W_down (silu(W_gate x) * W_up x).
void add_swiglu(const StepContext& step, const LayerWeights& layer, void* out, DType out_dtype) {
  const Activations& act = *step.act;
  step.program->add(
      linear_op(step, act.normed.data(), layer.gate, act.gate.data(), step.precision));
  step.program->add(linear_op(step, act.normed.data(), layer.up, act.up.data(), step.precision));
  SwigluParams swiglu;
  swiglu.rows = step.rows;
  swiglu.width = layer.gate.rows;
  swiglu.gate = act.gate.data();
  swiglu.up = act.up.data();
  swiglu.y = act.gate.data();
  swiglu.dtype = step.precision;
  step.program->add(swiglu);
  step.program->add(linear_op(step, act.gate.data(), layer.down, out, out_dtype));
}

void add_experts(const StepContext& step, const LayerWeights& layer) {
  const ModelConfig& c = *step.config;
  const Activations& act = *step.act;
  ExpertRouteParams route;
  route.score = route_score(c);
  route.rows = step.rows;
  route.width = c.hidden;
  route.experts = c.routed_experts;
  route.top_k = c.experts_per_token;
  route.groups = c.expert_groups;
  route.top_groups = c.top_groups;
  route.normalize = c.normalize_routes;
  route.scale = c.routed_scale;
  route.x = act.normed.data();
  route.x_dtype = step.precision;
  route.w = layer.router.data;
  route.w_dtype = layer.router.dtype;
  route.bias = layer.router_bias.empty() ? nullptr : layer.router_bias.data();
  route.ids = act.route_ids.as<int32_t>();
  route.weights = act.route_weights.as<float>();
  step.program->add(route);
  if (layer.has_shared) add_swiglu(step, layer, act.shared.data(), DType::kF32);

  ExpertFfnParams experts = expert_ffn_shape(c, step.precision, step.rows);
  experts.x = act.normed.data();
  experts.weights = layer.experts.data();
  experts.w_dtype = layer.expert_dtype;
  experts.ids = route.ids;
  experts.route_weights = route.weights;
  experts.shared = layer.has_shared ? act.shared.as<float>() : nullptr;
  experts.y = act.branch.data();
  experts.workspace = act.expert_work.data();
  step.program->add(experts);
}

}  // namespace

RouteScore route_score(const ModelConfig& config) {
  return config.router_score == RouterScore::kSoftmax ? RouteScore::kSoftmax
                                                      : RouteScore::kSigmoid;
}

MatmulParams linear_op(const StepContext& step, const void* x, const Weight& w, void* y,
                       DType y_dtype) {
  MatmulParams m;
  m.rows = step.rows;
  m.n = w.rows;
  m.k = w.cols;
  m.x = x;
  m.x_dtype = step.precision;
  m.x_stride = w.cols;
  m.w = w.data;
  m.w_dtype = w.dtype;
  m.w_scales = w.scales;
  m.y = y;
  m.y_dtype = y_dtype;
  m.y_stride = w.rows;
  m.own_rows = step.absorb_rows;
  return m;
}

RmsNormParams norm_op(const StepContext& step, const void* x, const Weight& weight, float eps,
                      void* y) {
  RmsNormParams norm;
  norm.rows = step.rows;
  norm.width = weight.rows;
  norm.x = x;
  norm.x_stride = weight.rows;
  norm.weight = weight.data;
  norm.weight_dtype = weight.dtype;
  norm.eps = eps;
  norm.y = y;
  norm.y_stride = weight.rows;
  norm.dtype = step.precision;
  return norm;
}

void add_layer(const StepContext& step, const LayerWeights& layer, const LatentCacheView& cache) {
  const Activations& act = *step.act;
  add_attention(step, layer, cache);
  step.program->add(
      norm_op(step, act.hidden.data(), layer.ffn_norm, step.config->norm_eps, act.normed.data()));
  if (layer.moe) {
    add_experts(step, layer);
  } else {
    add_swiglu(step, layer, act.branch.data(), step.precision);
  }
  add_residual(step);
}

}  // namespace ember
