// perplexity: the mean of -log p(next token) over all windows of a text.
#include "tools/commands/model/perplexity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/text/text_file.h"
#include "engine/text/tokenizer.h"
#include "tools/commands/progress.h"

namespace ember {
namespace {

// -log softmax(logits)[id], in double.
double surprise(std::span<const float> logits, int32_t id) {
  const double most = double{*std::max_element(logits.begin(), logits.end())};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - most);
  return most + std::log(sum) - double{logits[static_cast<size_t>(id)]};
}

Result<std::vector<int32_t>> read_tokens(const PerplexityOptions& options, uint32_t vocab) {
  EMBER_ASSIGN(const std::string text, read_text_file(options.text_file));
  EMBER_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::load(options.model.model));
  EMBER_ASSIGN(const std::vector<TokenId> tokens, tokenizer->encode(text, tokenizer->adds_bos()));
  if (tokens.size() < 2) {
    return Error{ErrorCode::kInvalidArgument,
                 options.text_file + ": holds less than 2 tokens, expected a text"};
  }
  for (const TokenId id : tokens) {
    if (id >= 0 && static_cast<uint32_t>(id) < vocab) continue;
    return Error{ErrorCode::kInvalidArgument, "token " + std::to_string(id) +
                                                  " is outside the model's vocabulary of " +
                                                  std::to_string(vocab)};
  }
  return std::vector<int32_t>(tokens.begin(), tokens.end());
}

}  // namespace

Status run_perplexity(const PerplexityOptions& options, std::ostream& out) {
  EMBER_ASSIGN(const std::unique_ptr<LocalModel> model, LocalModel::open(options.model));
  const ModelConfig& config = model->config();
  EMBER_ASSIGN(const std::vector<int32_t> ids, read_tokens(options, config.vocab_size));
  const uint64_t most = config.max_positions;
  const uint64_t window =
      options.context_tokens > 0 ? std::min(options.context_tokens, most) : most;
  Progress progress;
  double sum = 0;
  size_t judged = 0;
  for (size_t start = 0; start + 1 < ids.size(); start += window) {
    const auto part = std::span(ids).subspan(start, std::min<size_t>(window, ids.size() - start));
    EMBER_TRY(model->run(part, [&](size_t first, std::span<const float> logits) -> Status {
      for (size_t row = 0; row < logits.size() / config.vocab_size; ++row) {
        const size_t next = first + row + 1;
        if (next >= part.size()) break;
        sum += surprise(logits.subspan(row * config.vocab_size, config.vocab_size), part[next]);
        ++judged;
      }
      progress.show("perplexity",
                    static_cast<double>(start + first) / static_cast<double>(ids.size()));
      return {};
    }));
  }
  progress.clear();
  const double perplexity = std::exp(sum / static_cast<double>(judged));
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"tokens", ids.size()}, {"judged", judged}, {"perplexity", perplexity}};
    out << json.dump() << std::endl;
  } else {
    char line[80];
    std::snprintf(line, sizeof line, "%.4f over %zu tokens", perplexity, judged);
    out << line << std::endl;
  }
  return {};
}

}  // namespace ember
