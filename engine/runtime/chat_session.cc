// A conversation's turns: stored first, then computed, then reported durable.
#include "engine/runtime/chat_session.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/prng.h"

namespace ember {
namespace {

constexpr int64_t kWriteTimeoutUs = 30'000'000;
constexpr int64_t kFlushTimeoutUs = 60'000'000;

// What follows the tokens so far when `user` speaks next.
std::string turn_text(const ChatTemplate& chat_template, const Conversation& conversation,
                      size_t turn, std::string_view user) {
  const std::string before = turn == 0 ? chat_template.opening(conversation.system)
                                       : chat_template.answer_end();
  return before + chat_template.user_turn(user);
}

class ChatSessionImpl final : public ChatSession {
 public:
  ChatSessionImpl(Engine& engine, const ChatTemplate& chat_template, Conversation conversation)
      : engine_(engine), template_(chat_template), conversation_(std::move(conversation)) {}
  ~ChatSessionImpl() override {
    if (turn_ == nullptr) return;
    turn_->done = nullptr;
    ChatSessionImpl::cancel();
  }

  const Conversation& conversation() const override { return conversation_; }
  bool has_cut_answer() const override {
    return !conversation_.turns.empty() && conversation_.turns.back().state == TurnState::kAsked;
  }
  void start_finish(const TurnOptions& options, TurnDone done) override;
  Result<std::vector<TokenId>> tokens_of(std::string_view user) override {
    return engine_.encode(turn_text(template_, conversation_, conversation_.turns.size(), user));
  }
  void start_ask(std::string_view user, std::vector<TokenId> prompt, const TurnOptions& options,
                 TurnDone done) override;
  void cancel() override;
  Result<TurnOutcome> finish_answer(const TurnOptions& options) override;
  Result<TurnOutcome> ask(std::string_view user, const TurnOptions& options) override;

 private:
  // The turn under way: question stored, answer drawn, answer stored, latents flushed.
  struct UnderWay {
    UnderWay(const TurnOptions& its_options, TurnDone its_done, const Tokenizer& tokenizer)
        : options(its_options), done(std::move(its_done)), decoder(tokenizer, true) {}
    TurnOptions options;
    TurnDone done;
    StreamDecoder decoder;  // without special tokens
    TurnOutcome result;
    uint64_t request = 0;           // the scheduler's number; 0: none runs
    uint64_t failures_before = 0;
    size_t handed_over = 0;         // tokens of the answer that were given to the disk
    bool stored = false;
  };
  using Step = void (ChatSessionImpl::*)(bool ok);

  std::vector<TokenId> all_tokens() const;
  Turn& last_turn() { return conversation_.turns.back(); }
  void answer(bool question_stored);
  void draw(TokenId id);
  void show(TokenId id);
  void store_answer(const Outcome& outcome);
  void flush_latents(bool answer_stored);
  void report(bool flushed);
  void end(const Result<TurnOutcome>& result);
  // Stores the last turn on the write lane, in the order of the calls. Without a store: zero.
  Ticket store_turn();
  // Goes on with `next` when the ticket has completed; at once where there is none.
  void after(Ticket ticket, int64_t timeout_us, bool without, Step next);

  Engine& engine_;
  const ChatTemplate& template_;
  Conversation conversation_;
  std::shared_ptr<UnderWay> turn_;
  std::shared_ptr<const TicketOutcome> last_write_;
};

Ticket ChatSessionImpl::store_turn() {
  Conversations* store = engine_.cache().conversations();
  if (store == nullptr) return {};
  conversation_.updated_unix_us = system_clock().unix_us();
  const auto index = static_cast<uint32_t>(conversation_.turns.size() - 1);
  Conversation head = conversation_;
  head.turns.clear();
  return engine_.device().run_host(
      HostLane::kWrite, [store, head = std::move(head), index, turn = last_turn()]() -> Status {
        EMBER_TRY(store->put_head(head));
        return store->put_turn(head.id, index, turn);
      });
}

void ChatSessionImpl::after(Ticket ticket, int64_t timeout_us, bool without, Step next) {
  if (!ticket) return (this->*next)(without);
  engine_.scheduler().watch_for(
      ticket, timeout_us,
      [this, next, turn = std::weak_ptr<UnderWay>(turn_)](const Status& status) {
        if (!turn.expired()) (this->*next)(status.ok());  // else the session may be gone, too
      });
}

std::vector<TokenId> ChatSessionImpl::all_tokens() const {
  std::vector<TokenId> tokens;
  for (const Turn& turn : conversation_.turns) {
    tokens.insert(tokens.end(), turn.prompt.begin(), turn.prompt.end());
    tokens.insert(tokens.end(), turn.answer.begin(), turn.answer.end());
  }
  return tokens;
}

void ChatSessionImpl::start_ask(std::string_view user, std::vector<TokenId> prompt,
                                const TurnOptions& options, TurnDone done) {
  EMBER_CHECK(turn_ == nullptr, "one turn at a time");
  EMBER_CHECK(!has_cut_answer(), "the cut answer is finished before the next question");
  const size_t length = all_tokens().size() + prompt.size();
  if (length >= engine_.context_tokens()) {
    return done(Error{ErrorCode::kInvalidArgument,
                      "the conversation would have " + std::to_string(length) +
                          " tokens; the context holds " +
                          std::to_string(engine_.context_tokens()) + ", answer included"});
  }
  Turn turn;
  turn.user = std::string(user);
  turn.prompt = std::move(prompt);
  turn.seed = options.seed;
  turn.temperature = options.temperature;
  turn.max_tokens = options.max_tokens;
  conversation_.turns.push_back(std::move(turn));
  turn_ = std::make_shared<UnderWay>(options, std::move(done), engine_.tokenizer());
  after(store_turn(), kWriteTimeoutUs, false, &ChatSessionImpl::answer);
}

void ChatSessionImpl::start_finish(const TurnOptions& options, TurnDone done) {
  EMBER_CHECK(turn_ == nullptr, "one turn at a time");
  EMBER_CHECK(has_cut_answer(), "there is no cut answer");
  turn_ = std::make_shared<UnderWay>(options, std::move(done), engine_.tokenizer());
  answer(true);
}

// A question that could not be stored is answered all the same: it is then not durable.
void ChatSessionImpl::answer(bool /*question_stored*/) {
  Turn& turn = last_turn();
  turn_->failures_before = engine_.cache().stats().offload_failures;
  turn_->handed_over = turn.answer.size();
  for (const TokenId id : turn.answer) show(id);
  if (turn.answer.size() >= turn.max_tokens) {
    Outcome outcome;
    outcome.finish = FinishReason::kLength;
    return store_answer(outcome);
  }
  Request request;
  request.prompt = all_tokens();
  request.scope.conversation = conversation_.id;
  request.seed = turn.seed;
  request.temperature = turn.temperature;
  request.max_tokens = turn.max_tokens - static_cast<uint32_t>(turn.answer.size());
  request.on_prefill = turn_->options.on_prefill;
  request.on_token = [this](TokenId id) { draw(id); };
  request.on_done = [this](const Outcome& outcome) { store_answer(outcome); };
  const Result<uint64_t> submitted = engine_.submit(std::move(request));
  if (!submitted.ok()) return end(submitted.error());
  turn_->request = *submitted;
}

void ChatSessionImpl::draw(TokenId id) {
  Turn& turn = last_turn();
  turn.answer.push_back(id);
  // One write at a time: a slow disk makes them fewer, not their queue longer.
  const bool writing = last_write_ != nullptr && !last_write_->reported;
  if (turn.answer.size() - turn_->handed_over >= kSampledSyncTokens && !writing) {
    turn_->handed_over = turn.answer.size();
    if (const Ticket ticket = store_turn()) last_write_ = engine_.scheduler().follow(ticket);
  }
  show(id);
}

void ChatSessionImpl::show(TokenId id) {
  const std::string text = turn_->decoder.push(id);
  turn_->result.answer += text;
  if (turn_->options.on_text) turn_->options.on_text(id, text);
}

void ChatSessionImpl::store_answer(const Outcome& outcome) {
  turn_->request = 0;
  turn_->result.outcome = outcome;
  if (!outcome.status.ok()) return end(outcome.status.error());
  turn_->result.answer += turn_->decoder.finish();
  Turn& turn = last_turn();
  turn.state = TurnState::kFinished;
  turn.finish_reason = finish_reason_name(outcome.finish);
  after(store_turn(), kWriteTimeoutUs, false, &ChatSessionImpl::flush_latents);
}

void ChatSessionImpl::flush_latents(bool answer_stored) {
  turn_->stored = answer_stored;
  after(engine_.cache().sync(), kFlushTimeoutUs, true, &ChatSessionImpl::report);
}

void ChatSessionImpl::report(bool flushed) {
  const bool complete =
      engine_.cache().stats().offload_failures == turn_->failures_before;
  turn_->result.durable = turn_->stored && flushed && complete;
  turn_->result.answer_ids = last_turn().answer;
  end(turn_->result);
}

// `done` may begin the next turn, or let the session go: nothing is touched after it.
void ChatSessionImpl::end(const Result<TurnOutcome>& result) {
  const std::shared_ptr<UnderWay> ended = std::exchange(turn_, nullptr);
  if (ended->done) ended->done(result);
}

void ChatSessionImpl::cancel() {
  if (turn_ == nullptr) return;
  if (turn_->request != 0 && engine_.scheduler().cancel(turn_->request)) return;
  end(Error{ErrorCode::kCancelled, "cancelled"});
}

Result<TurnOutcome> ChatSessionImpl::ask(std::string_view user, const TurnOptions& options) {
  EMBER_ASSIGN(std::vector<TokenId> prompt, tokens_of(user));
  std::optional<Result<TurnOutcome>> ended;
  start_ask(user, std::move(prompt), options,
            [&ended](const Result<TurnOutcome>& result) { ended = result; });
  engine_.scheduler().run_until([&ended] { return ended.has_value(); });
  return *std::move(ended);
}

Result<TurnOutcome> ChatSessionImpl::finish_answer(const TurnOptions& options) {
  std::optional<Result<TurnOutcome>> ended;
  start_finish(options, [&ended](const Result<TurnOutcome>& result) { ended = result; });
  engine_.scheduler().run_until([&ended] { return ended.has_value(); });
  return *std::move(ended);
}

}  // namespace

std::string new_conversation_id() {
  static std::atomic<uint64_t> count{0};
  const auto now = static_cast<uint64_t>(system_clock().unix_us());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(counter_random(now, ++count, 0)));
  return text;
}

Result<std::string> conversation_id(Conversations& conversations, const std::string& id) {
  if (id != "last") return id;
  EMBER_ASSIGN(const std::vector<Conversation> heads, conversations.list());
  if (conversations.unreadable_heads() > 0) {
    return Error{ErrorCode::kCorruption,
                 std::to_string(conversations.unreadable_heads()) +
                     " conversations of the store cannot be read, perhaps the last; name the one "
                     "that is meant (emberkv conversations list)"};
  }
  if (!heads.empty()) return heads.front().id;
  return Error{ErrorCode::kInvalidArgument, "the store holds no conversation"};
}

Result<Conversation> conversation_to_resume(Engine& engine, const ChatTemplate& chat_template,
                                            Conversations& conversations, const std::string& id) {
  EMBER_ASSIGN(Conversation conversation, conversations.load(id));
  if (conversation.name_space != engine.identity().name_space) {
    return Error{ErrorCode::kInvalidArgument,
                 "conversation " + id + " was held with another model or precision (namespace " +
                     conversation.name_space.hex() + "; this one is " +
                     engine.identity().name_space.hex() +
                     "); emberkv du --by namespace tells what differs"};
  }
  if (conversation.template_name != chat_template.name()) {
    return Error{ErrorCode::kInvalidArgument, "conversation " + id + " uses the template " +
                                                  conversation.template_name +
                                                  "; this run uses " +
                                                  std::string(chat_template.name())};
  }
  if (conversation.turns.empty() || !conversation.turns.back().prompt.empty()) return conversation;
  const size_t last = conversation.turns.size() - 1;
  Turn& question = conversation.turns[last];
  EMBER_ASSIGN(question.prompt,
               engine.encode(turn_text(chat_template, conversation, last, question.user)));
  return conversation;
}

Result<std::unique_ptr<ChatSession>> ChatSession::begin(Engine& engine,
                                                        const ChatTemplate& chat_template,
                                                        std::string_view system) {
  Conversation conversation;
  conversation.id = new_conversation_id();
  conversation.name_space = engine.identity().name_space;
  conversation.system = std::string(system);
  conversation.template_name = std::string(chat_template.name());
  conversation.created_unix_us = system_clock().unix_us();
  conversation.updated_unix_us = conversation.created_unix_us;
  return resume(engine, chat_template, std::move(conversation));
}

std::unique_ptr<ChatSession> ChatSession::resume(Engine& engine, const ChatTemplate& chat_template,
                                                 Conversation conversation) {
  return std::make_unique<ChatSessionImpl>(engine, chat_template, std::move(conversation));
}

Result<std::unique_ptr<ChatSession>> ChatSession::resume(Engine& engine,
                                                         const ChatTemplate& chat_template,
                                                         const std::string& id) {
  Conversations* store = engine.cache().conversations();
  if (store == nullptr) {
    return Error{ErrorCode::kIo,
                 "no conversation can be resumed: " + engine.cache().health().reason};
  }
  EMBER_ASSIGN(const std::string found, conversation_id(*store, id));
  EMBER_ASSIGN(Conversation conversation,
               conversation_to_resume(engine, chat_template, *store, found));
  return resume(engine, chat_template, std::move(conversation));
}

}  // namespace ember
