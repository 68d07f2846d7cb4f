// Model size: the tensors of embedding, layers and head, counted.
#include "engine/checkpoint/model_size.h"

namespace ember {
namespace {

class Tensors {
 public:
  explicit Tensors(const ModelConfig& config) : c_(config) {}

  std::vector<TensorGroup> make() {
    add(TensorRole::kEmbedding, c_.vocab_size, c_.hidden, 1);
    add(TensorRole::kNorm, c_.hidden, 1, 1 + 2 * uint64_t{c_.layers});
    if (!c_.tied_head) add(TensorRole::kHead, c_.vocab_size, c_.hidden, 1);
    attention();
    uint64_t moe = 0;
    for (uint32_t layer = 0; layer < c_.layers; ++layer) moe += c_.is_moe_layer(layer) ? 1u : 0u;
    feed_forward(TensorRole::kLinear, c_.dense_inner, c_.layers - moe, c_.layers - moe);
    if (moe > 0) experts(moe);
    return std::move(groups_);
  }

 private:
  void add(TensorRole role, uint64_t rows, uint64_t cols, uint64_t count) {
    groups_.push_back({role, rows, cols, count, count});
  }

  void attention() {
    const uint64_t heads = c_.heads;
    const uint64_t query = heads * (uint64_t{c_.nope_dim} + c_.rope_dim);
    const uint64_t latent = c_.kv_lora_rank;
    if (c_.q_lora_rank == 0) {
      add(TensorRole::kLinear, query, c_.hidden, c_.layers);
    } else {
      add(TensorRole::kLinear, c_.q_lora_rank, c_.hidden, c_.layers);
      add(TensorRole::kNorm, c_.q_lora_rank, 1, c_.layers);
      add(TensorRole::kLinear, query, c_.q_lora_rank, c_.layers);
    }
    add(TensorRole::kLinear, latent + c_.rope_dim, c_.hidden, c_.layers);
    add(TensorRole::kNorm, latent, 1, c_.layers);
    add(TensorRole::kKeyValue, heads * (uint64_t{c_.nope_dim} + c_.value_dim), latent, c_.layers);
    add(TensorRole::kLinear, c_.hidden, heads * c_.value_dim, c_.layers);
  }

  void feed_forward(TensorRole role, uint64_t inner, uint64_t count, uint64_t active) {
    groups_.push_back({role, inner, c_.hidden, 2 * count, 2 * active});
    groups_.push_back({role, c_.hidden, inner, count, active});
  }

  void experts(uint64_t layers) {
    add(TensorRole::kRouter, c_.routed_experts, c_.hidden, layers);
    if (c_.router_score == RouterScore::kSigmoid) {
      add(TensorRole::kRouterBias, c_.routed_experts, 1, layers);
    }
    feed_forward(TensorRole::kExpert, c_.moe_inner, layers * c_.routed_experts,
                 layers * c_.experts_per_token);
    if (c_.shared_experts > 0) {
      feed_forward(TensorRole::kLinear, uint64_t{c_.shared_experts} * c_.moe_inner, layers, layers);
    }
  }

  const ModelConfig& c_;
  std::vector<TensorGroup> groups_;
};

}  // namespace

std::vector<TensorGroup> model_tensors(const ModelConfig& config) {
  return Tensors(config).make();
}

ParameterCount count_parameters(const ModelConfig& config) {
  ParameterCount count;
  for (const TensorGroup& group : model_tensors(config)) {
    count.total += group.values();
    count.active += group.rows * group.cols * group.active;
  }
  return count;
}

}  // namespace ember
