// A conversation's turns: stored first, then computed, then reported durable.
#include "engine/runtime/chat_session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/prng.h"

namespace ember {
namespace {

constexpr int64_t kWriteTimeoutUs = 30'000'000;

std::string new_conversation_id() {
  static uint64_t count = 0;
  const auto now = static_cast<uint64_t>(system_clock().unix_us());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(counter_random(now, ++count, 0)));
  return text;
}

class ChatSessionImpl final : public ChatSession {
 public:
  ChatSessionImpl(Engine& engine, const ChatTemplate& chat_template)
      : engine_(engine), template_(chat_template) {}

  Status start(std::string_view system);
  Status load(const std::string& id);

  const Conversation& conversation() const override { return conversation_; }
  bool has_cut_answer() const override {
    return !conversation_.turns.empty() && conversation_.turns.back().state == TurnState::kAsked;
  }
  Result<TurnOutcome> finish_answer(const TurnOptions& options) override;
  Result<TurnOutcome> ask(std::string_view user, const TurnOptions& options) override;

 private:
  // What follows the tokens so far when `user` speaks next.
  Result<std::vector<TokenId>> turn_tokens(std::string_view user);
  std::vector<TokenId> all_tokens() const;
  Result<TurnOutcome> answer(const TurnOptions& options);
  // Stores the last turn on the write lane, in the order of the calls. `wait`: until it is synced.
  bool store_turn(bool wait);
  bool stored_on_disk(const std::function<Status(Conversations&)>& write, bool wait);
  bool writing() const { return last_write_ != nullptr && !last_write_->reported; }

  Engine& engine_;
  const ChatTemplate& template_;
  Conversation conversation_;
  std::shared_ptr<const TicketOutcome> last_write_;
};

Status ChatSessionImpl::start(std::string_view system) {
  conversation_.id = new_conversation_id();
  conversation_.name_space = engine_.identity().name_space;
  conversation_.system = std::string(system);
  conversation_.template_name = std::string(template_.name());
  conversation_.created_unix_us = system_clock().unix_us();
  conversation_.updated_unix_us = conversation_.created_unix_us;
  return {};
}

Status ChatSessionImpl::load(const std::string& id) {
  Conversations* store = engine_.cache().conversations();
  if (store == nullptr) {
    return {ErrorCode::kIo, "no conversation can be resumed: " + engine_.cache().health().reason};
  }
  std::string wanted = id;
  if (id == "last") {
    EMBER_ASSIGN(const std::vector<Conversation> heads, store->list());
    if (store->unreadable_heads() > 0) {
      return {ErrorCode::kCorruption,
              std::to_string(store->unreadable_heads()) +
                  " conversations of the store cannot be read, perhaps the last; name the one to "
                  "resume (emberkv ls --conversations)"};
    }
    if (heads.empty()) return {ErrorCode::kInvalidArgument, "the store holds no conversation"};
    wanted = heads.front().id;
  }
  EMBER_ASSIGN(conversation_, store->load(wanted));
  if (conversation_.name_space != engine_.identity().name_space) {
    return {ErrorCode::kInvalidArgument,
            "conversation " + wanted + " was held with another model or precision (namespace " +
                conversation_.name_space.hex() + "; this one is " +
                engine_.identity().name_space.hex() + ")"};
  }
  if (conversation_.template_name != template_.name()) {
    return {ErrorCode::kInvalidArgument, "conversation " + wanted + " uses the template " +
                                             conversation_.template_name + "; this run uses " +
                                             std::string(template_.name())};
  }
  return {};
}

bool ChatSessionImpl::stored_on_disk(const std::function<Status(Conversations&)>& write,
                                     bool wait) {
  Conversations* store = engine_.cache().conversations();
  if (store == nullptr) return false;
  const Ticket ticket =
      engine_.device().run_host(HostLane::kWrite, [store, write] { return write(*store); });
  last_write_ = engine_.scheduler().follow(ticket);
  if (!wait) return true;
  return engine_.scheduler().wait_for(*last_write_, kWriteTimeoutUs) && last_write_->status.ok();
}

bool ChatSessionImpl::store_turn(bool wait) {
  conversation_.updated_unix_us = system_clock().unix_us();
  const auto index = static_cast<uint32_t>(conversation_.turns.size() - 1);
  Conversation head = conversation_;
  head.turns.clear();
  return stored_on_disk(
      [head = std::move(head), index,
       turn = conversation_.turns.back()](Conversations& store) -> Status {
        EMBER_TRY(store.put_head(head));
        return store.put_turn(head.id, index, turn);
      },
      wait);
}

Result<std::vector<TokenId>> ChatSessionImpl::turn_tokens(std::string_view user) {
  std::string text;
  if (conversation_.turns.empty()) {
    text = template_.opening(conversation_.system);
  } else {
    text = template_.answer_end();
  }
  text += template_.user_turn(user);
  return engine_.tokenizer().encode(text);
}

std::vector<TokenId> ChatSessionImpl::all_tokens() const {
  std::vector<TokenId> tokens;
  for (const Turn& turn : conversation_.turns) {
    tokens.insert(tokens.end(), turn.prompt.begin(), turn.prompt.end());
    tokens.insert(tokens.end(), turn.answer.begin(), turn.answer.end());
  }
  return tokens;
}

Result<TurnOutcome> ChatSessionImpl::ask(std::string_view user, const TurnOptions& options) {
  EMBER_CHECK(!has_cut_answer(), "the cut answer is finished before the next question");
  EMBER_ASSIGN(std::vector<TokenId> prompt, turn_tokens(user));
  const size_t length = all_tokens().size() + prompt.size();
  if (length >= engine_.context_tokens()) {
    return {ErrorCode::kInvalidArgument, "the conversation would have " + std::to_string(length) +
                                             " tokens; the context holds " +
                                             std::to_string(engine_.context_tokens()) +
                                             ", answer included"};
  }
  Turn turn;
  turn.user = std::string(user);
  turn.prompt = std::move(prompt);
  turn.seed = options.seed;
  turn.temperature = options.temperature;
  turn.max_tokens = options.max_tokens;
  conversation_.turns.push_back(std::move(turn));
  store_turn(/*wait=*/true);
  return answer(options);
}

Result<TurnOutcome> ChatSessionImpl::finish_answer(const TurnOptions& options) {
  EMBER_CHECK(has_cut_answer(), "there is no cut answer");
  return answer(options);
}

Result<TurnOutcome> ChatSessionImpl::answer(const TurnOptions& options) {
  Turn& turn = conversation_.turns.back();
  StreamDecoder decoder(engine_.tokenizer(), /*skip_special=*/true);
  TurnOutcome result;
  const uint64_t failures_before = engine_.cache().stats().offload_failures;
  auto emit = [&](TokenId id) {
    const std::string text = decoder.push(id);
    result.answer += text;
    if (options.on_text) options.on_text(id, text);
  };
  for (TokenId id : turn.answer) emit(id);

  Request request;
  request.prompt = all_tokens();
  request.scope.conversation = conversation_.id;
  request.seed = turn.seed;
  request.temperature = turn.temperature;
  size_t handed_over = turn.answer.size();
  request.on_token = [&](TokenId id) {
    turn.answer.push_back(id);
    // One write at a time: a slow disk makes them fewer, not their queue longer.
    if (turn.answer.size() - handed_over >= kSampledSyncTokens && !writing()) {
      handed_over = turn.answer.size();
      store_turn(/*wait=*/false);
    }
    emit(id);
  };
  if (turn.answer.size() < turn.max_tokens) {
    request.max_tokens = turn.max_tokens - static_cast<uint32_t>(turn.answer.size());
    result.outcome = engine_.run(std::move(request));
    if (!result.outcome.status.ok()) return result.outcome.status.error();
  } else {
    result.outcome.finish = FinishReason::kLength;
  }
  const std::string rest = decoder.finish();
  result.answer += rest;
  turn.state = TurnState::kFinished;
  turn.finish_reason = finish_reason_name(result.outcome.finish);
  const bool stored = store_turn(/*wait=*/true);
  const bool flushed = engine_.make_durable();
  const bool complete = engine_.cache().stats().offload_failures == failures_before;
  result.durable = stored && flushed && complete;
  result.answer_ids = turn.answer;
  return result;
}

}  // namespace

Result<std::unique_ptr<ChatSession>> ChatSession::begin(Engine& engine,
                                                        const ChatTemplate& chat_template,
                                                        std::string_view system) {
  auto session = std::make_unique<ChatSessionImpl>(engine, chat_template);
  EMBER_TRY(session->start(system));
  return std::unique_ptr<ChatSession>(std::move(session));
}

Result<std::unique_ptr<ChatSession>> ChatSession::resume(Engine& engine,
                                                         const ChatTemplate& chat_template,
                                                         const std::string& id) {
  auto session = std::make_unique<ChatSessionImpl>(engine, chat_template);
  EMBER_TRY(session->load(id));
  return std::unique_ptr<ChatSession>(std::move(session));
}

}  // namespace ember
