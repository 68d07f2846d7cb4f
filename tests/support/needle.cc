// Runs the contexts one by one: as read and from host RAM in one engine, from disk in another.
#include "tests/support/needle.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/runtime/engine.h"
#include "tests/support/needle_context.h"

namespace ember {
namespace {

constexpr size_t kAnswerTokens = 24;
constexpr size_t kQuestionTokens = 40;  // room for it and for the signs of the turn

struct Asked {
  size_t cell = 0;
  std::vector<TokenId> prompt;
  std::string value;
  std::vector<TokenId> answer;  // of the uninterrupted run
};

struct Context {
  std::vector<TokenId> opening;
  std::vector<Asked> questions;
};

class NeedleRun {
 public:
  explicit NeedleRun(const NeedleOptions& options) : options_(options) {}

  Result<NeedleResult> run() {
    EMBER_ASSIGN(const FactBook book, FactBook::load(options_.model_path));
    EMBER_TRY(open());
    EMBER_TRY(plant(book));
    for (Context& context : contexts_) {
      EMBER_ASSIGN([[maybe_unused]] const Outcome read, answer(context.opening, true, 1));
      for (Asked& asked : context.questions) EMBER_TRY(ask_on(context, asked));
      EMBER_TRY(ask_cold(context.questions.front()));
      EMBER_TRY(make_durable());
      for (const Asked& asked : context.questions) EMBER_TRY(ask(context, asked, Tier::kHost));
    }
    EMBER_TRY(make_durable());
    engine_.reset();
    EMBER_TRY(open());
    for (const Context& context : contexts_) {
      for (const Asked& asked : context.questions) EMBER_TRY(ask(context, asked, Tier::kDisk));
    }
    return std::move(result_);
  }

 private:
  Status open() {
    EngineOptions options;
    options.model_path = options_.model_path;
    options.store_path = options_.store_path;
    options.cache_dtype = options_.cache_dtype;
    options.ram_bytes = uint64_t{512} << 20;
    options.disk_bytes = uint64_t{2} << 30;
    options.restore = RestorePolicy::kAlways;
    options.workers = options_.workers;
    EMBER_ASSIGN(engine_, Engine::open(options));
    result_.token_bytes = engine_->cache().layout().token_bytes();
    const StoreHealth& health = engine_->cache().health();
    if (health.state == StoreState::kOk) return {};
    return {ErrorCode::kIo, options_.store_path + ": " + health.reason};
  }

  Status plant(const FactBook& book) {
    EMBER_ASSIGN(const auto chat, ChatTemplate::choose(engine_->tokenizer(), ""));
    const auto count = [this](std::string_view line) {
      const auto ids = engine_->encode(std::string(line) + '\n');
      return ids.ok() ? ids->size() : 0;
    };
    for (const size_t length : options_.lengths) {
      if (length <= kQuestionTokens + kAnswerTokens || length > engine_->context_tokens()) {
        return {ErrorCode::kInvalidArgument,
                "a context of " + std::to_string(length) + " tokens, expected " +
                    std::to_string(kQuestionTokens + kAnswerTokens + 1) + " to " +
                    std::to_string(engine_->context_tokens())};
      }
      const size_t first_cell = result_.cells.size();
      for (size_t i = 0; i < options_.depths; ++i) result_.cells.push_back({length, i});
      for (size_t i = 0; i < options_.contexts; ++i) {
        const uint64_t seed = counter_random(options_.seed, length, i);
        EMBER_ASSIGN(const NeedleContext text,
                     plant_needles(book, length - kQuestionTokens - kAnswerTokens, options_.depths,
                                   seed, count));
        EMBER_TRY(add(text, *chat, first_cell));
      }
    }
    return {};
  }

  Status add(const NeedleContext& text, const ChatTemplate& chat, size_t first_cell) {
    Context context;
    const std::string opening = chat.opening(text.text);
    std::string dialogue = opening;
    EMBER_ASSIGN(context.opening, engine_->encode(opening));
    for (size_t i = 0; i < text.facts.size(); ++i) {
      const PlantedFact& fact = text.facts[i];
      const std::string turn = chat.user_turn(fact.question.question);
      Asked asked{first_cell + i, {}, fact.question.value, {}};
      EMBER_ASSIGN(asked.prompt, engine_->encode(opening + turn));
      context.questions.push_back(std::move(asked));
      dialogue += turn + fact.answer + chat.answer_end();
    }
    contexts_.push_back(std::move(context));
    result_.texts.push_back(std::move(dialogue));
    return {};
  }

  Result<Outcome> answer(const std::vector<TokenId>& prompt, bool use_cache, uint32_t tokens) {
    Request request;
    request.prompt = prompt;
    request.max_tokens = tokens;
    request.use_cache = use_cache;
    Outcome outcome = engine_->run(std::move(request));
    if (!outcome.status.ok()) return outcome.status.error();
    return outcome;
  }

  Status make_durable() {
    if (engine_->make_durable()) return {};
    return {ErrorCode::kIo, options_.store_path + ": not all of it could be stored"};
  }

  // The run that read the context goes on: its latents are still where it computed them.
  Status ask_on(const Context& context, Asked& asked) {
    EMBER_ASSIGN(const Outcome outcome, answer(asked.prompt, true, kAnswerTokens));
    if (!came_whole_from(Tier::kDevice, context, outcome)) {
      return {ErrorCode::kCapacity, "a context that was just read is no longer on the device"};
    }
    asked.answer = outcome.token_ids;
    EMBER_ASSIGN(const std::string text, engine_->tokenizer().decode(asked.answer, true));
    NeedleCell& cell = result_.cells[asked.cell];
    ++cell.asked;
    if (text.find(asked.value) != std::string::npos) ++cell.right;
    note_progress();
    return {};
  }

  Status ask_cold(const Asked& asked) {
    EMBER_ASSIGN(const Outcome cold, answer(asked.prompt, false, kAnswerTokens));
    NeedleCell& cell = result_.cells[asked.cell];
    ++cell.cold_asked;
    if (cold.token_ids != asked.answer) ++cell.cold_differs;
    return {};
  }

  static bool came_whole_from(Tier tier, const Context& context, const Outcome& outcome) {
    const size_t span = kDefaultBlockTokens;
    return outcome.restore.restored_tokens[static_cast<size_t>(tier)] >=
               context.opening.size() / span * span &&
           outcome.restore.total() + span > context.opening.size();
  }

  // With what is in the tiers above lost.
  Status ask(const Context& context, const Asked& asked, Tier tier) {
    engine_->cache().drop_tier(Tier::kDevice);
    if (tier == Tier::kDisk) engine_->cache().drop_tier(Tier::kHost);
    EMBER_ASSIGN(const Outcome outcome, answer(asked.prompt, true, kAnswerTokens));
    const bool whole = came_whole_from(tier, context, outcome);
    const bool equal = outcome.token_ids == asked.answer;
    NeedleCell& cell = result_.cells[asked.cell];
    const bool host = tier == Tier::kHost;
    (host ? cell.host_restored : cell.disk_restored) += whole ? 1 : 0;
    (host ? cell.host_differs : cell.disk_differs) += equal ? 0 : 1;
    note_progress();
    return {};
  }

  void note_progress() {
    const size_t all = contexts_.size() * options_.depths * 3;
    if (options_.progress) {
      options_.progress(static_cast<double>(++done_) / static_cast<double>(all));
    }
  }

  const NeedleOptions& options_;
  std::unique_ptr<Engine> engine_;
  std::vector<Context> contexts_;
  NeedleResult result_;
  size_t done_ = 0;
};

}  // namespace

NeedleCell NeedleResult::total() const {
  NeedleCell sum;
  for (const NeedleCell& cell : cells) {
    sum.asked += cell.asked;
    sum.right += cell.right;
    sum.host_differs += cell.host_differs;
    sum.disk_differs += cell.disk_differs;
    sum.host_restored += cell.host_restored;
    sum.disk_restored += cell.disk_restored;
    sum.cold_asked += cell.cold_asked;
    sum.cold_differs += cell.cold_differs;
  }
  return sum;
}

Result<NeedleResult> run_needle(const NeedleOptions& options) { return NeedleRun(options).run(); }

}  // namespace ember
