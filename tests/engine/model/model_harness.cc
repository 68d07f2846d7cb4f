// Model harness: the smallest engine that can run a model, with every sequence in slots of its own.
#include "tests/engine/model/model_harness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/check.h"
#include "base/prng.h"
#include "engine/model/identity.h"

namespace ember::testing {
namespace {

constexpr size_t kSequences = 4;
constexpr size_t kTokensPerSequence = 1024;
constexpr uint32_t kBlockTokens = 64;

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.error().message.c_str());
  return std::move(result).value();
}

}  // namespace

ModelHarness::ModelHarness(const std::string& folder, DType precision, AttentionForm form,
                           const HarnessOptions& options) {
  device_ = make_cpu_device({.workers = options.workers});
  const DType cache_dtype = options.fp8_cache ? DType::kF8E4M3 : precision;
  const ModelConfig config = must(load_model_config(folder));
  weights_ = must(load_weights(must(Checkpoint::open(folder)), config, precision, *device_, {},
                               options.weights));
  layout_ = model_kv_layout(config, cache_dtype, kBlockTokens, 1);
  const size_t blocks = kTokensPerSequence / kBlockTokens;
  pool_ = must(device_->allocate(kSequences * blocks * layout_.block_bytes()));
  // Neighbouring blocks of a sequence lie apart, as they do in a used pool.
  tables_.resize(kSequences);
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t s = 0; s < kSequences; ++s) {
      tables_[s].push_back(static_cast<int32_t>((blocks - 1 - b) * kSequences + s));
    }
  }
  std::vector<LatentCacheView> views;
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    LatentCacheView view;
    view.pool = pool_.bytes();
    view.slot_bytes = layout_.block_bytes();
    view.layer_offset = layout_.layer_offset(layer);
    view.row_bytes = layout_.row_bytes();
    view.dtype = cache_dtype;
    view.block_tokens = kBlockTokens;
    views.push_back(view);
  }
  ForwardOptions forward;
  forward.precision = precision;
  forward.attention = form;
  forward.max_rows = kTokensPerSequence;
  forward.max_sequences = kSequences;
  forward.max_blocks = blocks;
  forward.max_logit_rows = kTokensPerSequence;
  forward.max_positions = kTokensPerSequence;
  forward_ =
      must(Forward::create(*weights_, forward, std::move(views), config.vocab_size, *device_));
}

void ModelHarness::step(std::span<const StepSequence> sequences) {
  const Ticket ticket = device_->submit(forward_->build(sequences));
  std::array<Completion, 1> done;
  while (device_->wait_any(std::numeric_limits<int64_t>::max(), done) == 0) {
  }
  EMBER_CHECK(done[0].ticket == ticket && done[0].status.ok(), "the step failed");
}

ModelRun ModelHarness::collect(size_t sequence, size_t tokens, std::vector<float> logits) const {
  ModelRun run;
  run.logits = std::move(logits);
  for (uint32_t layer = 0; layer < layout_.layers(); ++layer) {
    std::vector<std::byte> rows;
    for (size_t t = 0; t < tokens; ++t) {
      const auto slot = static_cast<size_t>(tables_[sequence][t / kBlockTokens]);
      const std::byte* row = pool_.bytes() + slot * layout_.block_bytes() +
                             layout_.layer_offset(layer) + t % kBlockTokens * layout_.row_bytes();
      rows.insert(rows.end(), row, row + layout_.row_bytes());
    }
    run.rows.push_back(std::move(rows));
  }
  return run;
}

ModelRun ModelHarness::run(const Tokens& tokens, size_t chunk) {
  return run_together({tokens}, chunk).front();
}

std::vector<ModelRun> ModelHarness::run_together(const std::vector<Tokens>& prompts, size_t chunk) {
  const size_t vocab = config().vocab_size;
  std::vector<std::vector<float>> logits(prompts.size());
  for (size_t first = 0;; first += chunk) {
    std::vector<StepSequence> sequences;
    std::vector<size_t> owners;
    for (size_t s = 0; s < prompts.size(); ++s) {
      if (first >= prompts[s].size()) continue;
      const size_t rest = prompts[s].size() - first;
      StepSequence sequence;
      const size_t count = chunk == 0 ? rest : std::min(chunk, rest);
      sequence.tokens = std::span(prompts[s]).subspan(first, count);
      sequence.first_position = static_cast<int32_t>(first);
      sequence.block_table = tables_[s];
      sequence.logit_rows = sequence.tokens.size();
      sequences.push_back(sequence);
      owners.push_back(s);
    }
    if (sequences.empty()) break;
    step(sequences);
    std::span<const float> made = forward_->logits();
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto mine = made.first(sequences[i].logit_rows * vocab);
      logits[owners[i]].insert(logits[owners[i]].end(), mine.begin(), mine.end());
      made = made.subspan(mine.size());
    }
    if (chunk == 0) break;
  }
  std::vector<ModelRun> runs;
  for (size_t s = 0; s < prompts.size(); ++s) {
    runs.push_back(collect(s, prompts[s].size(), std::move(logits[s])));
  }
  return runs;
}

Tokens ModelHarness::greedy(const Tokens& prompt, size_t count) {
  Tokens drawn;
  Tokens next = prompt;
  int32_t position = 0;
  for (size_t i = 0; i < count; ++i) {
    StepSequence sequence;
    sequence.tokens = next;
    sequence.first_position = position;
    sequence.block_table = tables_[0];
    sequence.logit_rows = 1;
    sequence.sample = true;
    step({&sequence, 1});
    position += static_cast<int32_t>(next.size());
    next = {forward_->sampled()[0]};
    drawn.push_back(next[0]);
  }
  return drawn;
}

Tokens ModelHarness::draw_together(const std::vector<Tokens>& prompts,
                                   const std::vector<size_t>& logit_rows,
                                   const std::vector<bool>& sample) {
  std::vector<StepSequence> sequences(prompts.size());
  for (size_t s = 0; s < prompts.size(); ++s) {
    sequences[s].tokens = prompts[s];
    sequences[s].block_table = tables_[s];
    sequences[s].logit_rows = logit_rows[s];
    sequences[s].sample = sample[s];
  }
  step(sequences);
  return {forward_->sampled().begin(), forward_->sampled().end()};
}

Tokens random_tokens(uint64_t seed, size_t count, uint32_t vocab) {
  Prng prng(seed);
  Tokens tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(prng.below(vocab));
  return tokens;
}

double worst_row_error(std::span<const float> found, std::span<const float> expected,
                       size_t width) {
  EMBER_CHECK(found.size() == expected.size() && !found.empty(), "shapes differ");
  double worst = 0;
  for (size_t row = 0; row < expected.size() / width; ++row) {
    double largest = 0;
    double difference = 0;
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      largest = std::max(largest, std::abs(double{expected[i]}));
      const double here = std::abs(double{found[i]} - double{expected[i]});
      // A NaN is no small difference.
      difference = here <= difference ? difference : here;
    }
    const double error = difference / largest;
    worst = error <= worst ? worst : error;
  }
  return worst;
}

double median_row_error(std::span<const float> found, std::span<const float> expected,
                        size_t width) {
  EMBER_CHECK(found.size() == expected.size() && !found.empty(), "shapes differ");
  std::vector<double> errors;
  for (size_t row = 0; row < expected.size() / width; ++row) {
    double squares = 0;
    double difference = 0;
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      squares += double{expected[i]} * double{expected[i]};
      const double d = double{found[i]} - double{expected[i]};
      difference += d * d;
    }
    errors.push_back(std::sqrt(difference / squares));
  }
  std::nth_element(errors.begin(), errors.begin() + static_cast<ptrdiff_t>(errors.size() / 2),
                   errors.end());
  return errors[errors.size() / 2];
}

}  // namespace ember::testing
