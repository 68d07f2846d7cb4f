// Rig: a model on a block cache, driven token by token, so that a test sees every logit and latent.
//
// Journey    test -> [rig] -> block_cache, forward: the engine's loop without its scheduling
// Invariant  what feed() returns for a position is the same bits, however its prefix got there
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/forward.h"
#include "engine/model/identity.h"
#include "engine/model/weights.h"
#include "kernels/device.h"
#include "store/block_cache.h"

namespace ember {

struct RigOptions {
  std::string model_path = {};
  std::string store_path = {};  // empty: no store
  AttentionForm attention = AttentionForm::kAbsorb;
  DType precision = DType::kBf16;
  uint32_t layers_per_group = 0;
  size_t chunk_tokens = 64;
  size_t context_tokens = 512;
  uint64_t ram_bytes = 512u << 20;
  uint64_t disk_bytes = 256u << 20;
  uint64_t sim_seed = 0;  // not 0: on a simulated device
  int workers = 2;
};

struct FeedResult {
  RestoreReport report;
  size_t computed_tokens = 0;
  std::vector<float> last_logits;  // after the last token
  std::vector<std::byte> latents;  // of all tokens: per token, per layer one row
};

class Rig {
 public:
  explicit Rig(RigOptions options);
  ~Rig();

  // Opens the cache (again, after close). The model stays loaded.
  void open();
  // Makes everything durable and closes the cache: what a new process would find is on disk.
  void close();

  // Restores what is known of `tokens`, computes the rest, commits, and writes the tail.
  FeedResult feed(const std::vector<TokenId>& tokens);
  // The same without looking into the cache and without leaving anything there.
  FeedResult feed_cold(const std::vector<TokenId>& tokens);
  // Waits until everything committed is durable.
  void sync();

  BlockCache& cache() { return *cache_; }
  const ModelConfig& config() const { return weights_->config; }
  // Tokens from a seed, all inside the vocabulary.
  std::vector<TokenId> random_tokens(size_t count, uint64_t seed) const;

 private:
  FeedResult run(const std::vector<TokenId>& tokens, bool use_cache);
  void wait_for(Ticket ticket);
  void pump();

  RigOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ModelWeights> weights_;
  KvLayout layout_;
  Identity identity_;
  std::unique_ptr<BlockCache> cache_;
  std::unique_ptr<Forward> forward_;
  std::vector<Completion> seen_;
};

// The trained demo model, and the golden checkpoint of about a million random parameters.
std::string demo_model_path();
std::string tiny_model_path();

}  // namespace ember
