// The rig's loop: what the scheduler does for many requests, written out for one.
#include "tests/support/rig.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/clock.h"
#include "base/prng.h"

namespace ember {
namespace {

constexpr int64_t kPatienceUs = 60'000'000;

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) ADD_FAILURE() << result.error().message;
  return std::move(result).value();
}

}  // namespace

std::string demo_model_path() { return std::string(EMBER_SOURCE_DIR) + "/models/demo"; }
std::string tiny_model_path() { return std::string(EMBER_SOURCE_DIR) + "/tests/data/goldens_v3"; }

Rig::Rig(RigOptions options) : options_(std::move(options)) {
  device_ = options_.sim_seed != 0 ? make_sim_device(options_.sim_seed)
                                   : make_cpu_device({.workers = options_.workers});
  const ModelConfig config = must(load_model_config(options_.model_path));
  std::shared_ptr<Checkpoint> checkpoint = must(Checkpoint::open(options_.model_path));
  weights_ = must(load_weights(checkpoint, config, options_.precision, *device_, {}));
  layout_ =
      model_kv_layout(config, options_.precision, kDefaultBlockTokens, options_.layers_per_group);
  identity_ = make_identity(config, must(checkpoint->fingerprint({})), layout_, *device_,
                            options_.attention == AttentionForm::kNaive ? AttentionMode::kNaive
                                                                        : AttentionMode::kAbsorb);
  open();
}

Rig::~Rig() {
  forward_.reset();
  cache_.reset();
}

void Rig::open() {
  BlockCacheOptions cache;
  cache.store_path = options_.store_path;
  cache.layout = layout_;
  cache.name_space = identity_.name_space;
  cache.numerics_build = identity_.numerics_build;
  cache.ram_bytes = options_.ram_bytes;
  cache.disk_bytes = options_.disk_bytes;
  cache.request_tokens = options_.context_tokens;
  cache_ = must(BlockCache::open(cache, *device_));

  ForwardOptions forward;
  forward.precision = options_.precision;
  forward.attention = options_.attention;
  forward.max_rows = options_.chunk_tokens;
  forward.max_sequences = 1;
  forward.max_blocks = (options_.context_tokens + kDefaultBlockTokens - 1) / kDefaultBlockTokens;
  forward.max_logit_rows = 1;
  forward.max_positions = options_.context_tokens;
  std::vector<LatentCacheView> views;
  for (uint32_t layer = 0; layer < layout_.layers(); ++layer) {
    views.push_back(cache_->layer_view(layer));
  }
  forward_ = must(Forward::create(*weights_, forward, views, config().vocab_size, *device_));
}

void Rig::close() {
  sync();
  forward_.reset();
  cache_.reset();
}

void Rig::pump() {
  std::array<Completion, 16> completions;
  const size_t n = device_->wait_any(system_clock().now_us() + 50'000, completions);
  for (size_t i = 0; i < n; ++i) {
    if (!cache_->handle(completions[i])) seen_.push_back(completions[i]);
  }
  cache_->tick();
}

void Rig::wait_for(Ticket ticket) {
  const int64_t deadline_us = system_clock().now_us() + kPatienceUs;
  while (system_clock().now_us() < deadline_us) {
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].ticket != ticket) continue;
      EXPECT_TRUE(seen_[i].status.ok()) << seen_[i].status.error().message;
      seen_.erase(seen_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    pump();
  }
  FAIL() << "a ticket did not complete in time";
}

void Rig::sync() {
  if (const Ticket ticket = cache_->sync()) wait_for(ticket);
}

FeedResult Rig::feed(const std::vector<TokenId>& tokens) { return run(tokens, true); }
FeedResult Rig::feed_cold(const std::vector<TokenId>& tokens) { return run(tokens, false); }

FeedResult Rig::run(const std::vector<TokenId>& tokens, bool use_cache) {
  FeedResult result;
  const size_t known = use_cache ? cache_->match(tokens).tokens : 0;
  auto chain = must(cache_->open_chain(tokens, known, tokens.size()));
  const int64_t deadline_us = system_clock().now_us() + kPatienceUs;
  while (!chain->ready() && system_clock().now_us() < deadline_us) pump();
  EXPECT_TRUE(chain->ready()) << "the restore did not end in time";
  result.report = chain->restore_report();

  size_t position = chain->length();
  result.computed_tokens = tokens.size() - position;
  while (position < tokens.size()) {
    const size_t n = std::min(options_.chunk_tokens, tokens.size() - position);
    const bool last = position + n == tokens.size();
    const std::span<const TokenId> part = std::span(tokens).subspan(position, n);
    const std::array<StepSequence, 1> step = {StepSequence{
        .tokens = part,
        .first_position = static_cast<int32_t>(position),
        .block_table = chain->block_table(),
        .logit_rows = last ? 1u : 0u,
    }};
    wait_for(device_->submit(forward_->build(step)));
    if (use_cache) cache_->commit(*chain, part);
    if (last) result.last_logits.assign(forward_->logits().begin(), forward_->logits().end());
    position += n;
  }
  for (size_t token = 0; token < tokens.size(); ++token) {
    for (uint32_t layer = 0; layer < layout_.layers(); ++layer) {
      LatentCacheView view = cache_->layer_view(layer);
      view.block_tables = chain->block_table().data();
      const std::byte* row = view.row(0, static_cast<int32_t>(token));
      result.latents.insert(result.latents.end(), row, row + view.row_bytes);
    }
  }
  if (use_cache) cache_->commit_tail(*chain);
  return result;
}

std::vector<TokenId> Rig::random_tokens(size_t count, uint64_t seed) const {
  Prng prng(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(prng.below(config().vocab_size));
  return tokens;
}

}  // namespace ember
