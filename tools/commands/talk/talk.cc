// Talk: opens or resumes a conversation, finishes a cut answer, then answers line by line.
#include "tools/commands/talk/talk.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/commands/bounded_line.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"
#include "tools/commands/progress.h"
#include "tools/commands/talk/report.h"
#include "tools/commands/talk/turn_feed.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

constexpr size_t kMostLineBytes = size_t{1} << 20;

constexpr int64_t kLeavePatienceUs = 2'000'000;
constexpr int64_t kLookUs = 100'000;  // how soon an end is noticed while an answer is computed

// Where the conversations lie. Errors: kInvalidArgument where the store cannot be used.
Result<Conversations*> conversations_of(const std::string& id, Holding& holding) {
  Result<Conversations*> found = static_cast<Conversations*>(nullptr);
  EMBER_TRY(holding.call([&] {
    BlockCache& cache = holding.engine().cache();
    found = cache.conversations();
    if (*found != nullptr) return;
    const StoreHealth& health = cache.health();
    found = Error{ErrorCode::kInvalidArgument,
                  "conversation " + id + " cannot be resumed: the store is " +
                      std::string(store_state_name(health.state)) +
                      (health.reason.empty() ? "" : " (" + health.reason + ")")};
  }));
  return found;
}

class Talk {
 public:
  Talk(const TalkOptions& options, const TalkStreams& streams, Holding& holding)
      : options_(options),
        streams_(streams),
        holding_(holding),
        progress_(streams.err, streams.progress) {}
  ~Talk() {
    // Where that cannot be, the session goes with `holding_`.
    if (session_ != nullptr) {
      static_cast<void>(holding_.call([this] { holding_.let_go(*session_); }));
    }
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  Status open();
  int run();

 private:
  // Reads, checks and tokenises on this thread, and claims the conversation before.
  struct Claimed {
    ConversationClaim claim;
    std::optional<Conversation> conversation;
  };
  Result<Claimed> conversation_to_go_on_with();
  // Waits a little for a terminal that has just gone to leave the conversation.
  Result<ConversationClaim> claim(const std::string& id);
  bool read_line(std::string& line);
  using Start = std::function<void(const TurnOptions&, ChatSession::TurnDone)>;
  Result<TurnOutcome> turn(const Start& start);
  Result<TurnOutcome> ask(const std::string& line);
  void print(const TurnFeed::News& news);
  void report(const Result<TurnOutcome>& turn, bool finished_cut_answer);
  bool answers() const { return !unfinished_ && !gone_; }

  void print_prompt_sign() {
    if (!options_.json && options_.interactive) streams_.out << "> " << std::flush;
  }

  const TalkOptions& options_;
  const TalkStreams& streams_;
  Holding& holding_;
  Progress progress_;
  ChatSession* session_ = nullptr;
  bool unfinished_ = false;  // its last answer is a cut one
  bool failed_ = false;
  bool gone_ = false;  // the engine answers no more
};

Result<ConversationClaim> Talk::claim(const std::string& id) {
  for (int64_t waited_us = 0;; waited_us += kLookUs) {
    if (ConversationClaim claim = holding_.claim(id)) return claim;
    if (waited_us >= kLeavePatienceUs || streams_.stopped()) {
      return Error{ErrorCode::kInvalidArgument,
                   "conversation " + id + " is open in another terminal"};
    }
    std::this_thread::sleep_for(std::chrono::microseconds(kLookUs));
  }
}

Result<Talk::Claimed> Talk::conversation_to_go_on_with() {
  if (!options_.resume) return Claimed{};
  EMBER_ASSIGN(Conversations* const conversations, conversations_of(*options_.resume, holding_));
  EMBER_ASSIGN(const std::string id, conversation_id(*conversations, *options_.resume));
  Claimed claimed;
  EMBER_ASSIGN(claimed.claim, claim(id));
  EMBER_ASSIGN(claimed.conversation,
               conversation_to_resume(holding_.engine(), *holding_.chat_template(), *conversations,
                                      id));
  return claimed;
}

Status Talk::open() {
  EMBER_ASSIGN(Claimed claimed, conversation_to_go_on_with());
  Status opened;
  std::string first_line;
  std::string cut_question;
  EMBER_TRY(holding_.call([&] {
    Engine& engine = holding_.engine();
    const ChatTemplate& chat_template = *holding_.chat_template();
    Result<std::unique_ptr<ChatSession>> session =
        claimed.conversation
            ? ChatSession::resume(engine, chat_template, std::move(*claimed.conversation))
            : ChatSession::begin(engine, chat_template, options_.system);
    opened = session.ok() ? Status() : session.error();
    if (!session.ok()) return;
    const std::string id = (*session)->conversation().id;
    if (claimed.claim == nullptr) claimed.claim = holding_.claim(id);
    session_ = &holding_.keep(std::move(session).value(), std::move(claimed.claim));
    const Conversation& conversation = session_->conversation();
    unfinished_ = session_->has_cut_answer();
    if (unfinished_) cut_question = conversation.turns.back().user;
    first_line = options_.json ? ready_json({.conversation = &conversation,
                                             .resumed = options_.resume.has_value(),
                                             .cut_answer = unfinished_,
                                             .context_tokens = engine.context_tokens(),
                                             .load_us = engine.load_us(),
                                             .health = engine.cache().health()})
                               : "conversation " + conversation.id + ", " +
                                     counted(conversation.turns.size(), "turn");
  }));
  EMBER_TRY(std::move(opened));
  (options_.json ? streams_.out : streams_.err) << first_line << std::endl;
  if (unfinished_ && !options_.json && options_.interactive) {
    streams_.out << "> " << printable(cut_question) << std::endl;
  }
  return {};
}

bool Talk::read_line(std::string& line) {
  const LineEnd end = read_bounded_line(streams_.in, line, kMostLineBytes);
  if (end == LineEnd::kTooLong) {
    failed_ = true;
    print_error(streams_.err,
                "a line of input is longer than " + std::to_string(kMostLineBytes) + " bytes");
  }
  return end == LineEnd::kLine;
}

int Talk::run() {
  if (unfinished_) {
    report(turn([this](const TurnOptions& options, ChatSession::TurnDone done) {
             session_->start_finish(options, std::move(done));
           }),
           true);
    if (!answers()) return kExitFailed;
  }
  std::string line;
  while (print_prompt_sign(), read_line(line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line == "/exit") break;
    if (line.empty()) continue;
    report(ask(line), false);
    if (!streams_.out) return kExitFailed;  // nobody reads
    // The question stands and its answer failed: only another run can go on with it.
    if (!answers()) return kExitFailed;
  }
  return failed_ && !options_.interactive ? kExitFailed : kExitOk;
}

// A long question is tokenised on this thread.
Result<TurnOutcome> Talk::ask(const std::string& line) {
  EMBER_ASSIGN(std::vector<TokenId> prompt, session_->tokens_of(line));
  return turn([this, &line, &prompt](const TurnOptions& options, ChatSession::TurnDone done) {
    session_->start_ask(line, std::move(prompt), options, std::move(done));
  });
}

Result<TurnOutcome> Talk::turn(const Start& start) {
  const auto feed = std::make_shared<TurnFeed>();
  TurnOptions options = feeding(feed);
  options.max_tokens = options_.max_tokens;
  options.temperature = options_.temperature;
  options.seed = options_.seed;
  const auto begin = [&] {
    start(options, [feed](const Result<TurnOutcome>& turn) { feed->put_end(turn); });
  };
  Status asked = holding_.call(begin);
  bool cancelled = false;
  while (asked.ok()) {
    TurnFeed::News news = feed->take(kLookUs);
    print(news);
    if (news.ended) {
      asked = holding_.call([this] { unfinished_ = session_->has_cut_answer(); });
      gone_ = !asked.ok();
      return *std::move(news.ended);
    }
    if (cancelled || !(streams_.stopped() || !streams_.out)) continue;
    cancelled = true;
    asked = holding_.call([this] { session_->cancel(); });
  }
  gone_ = true;
  return asked.error();
}

void Talk::print(const TurnFeed::News& news) {
  if (news.prefilled) progress_.show("prompt", *news.prefilled);
  if (news.pieces.empty()) return;
  progress_.clear();
  for (const auto& [id, text] : news.pieces) {
    if (options_.json) {
      streams_.out << delta_json(id, text) << '\n';
    } else {
      streams_.out << text;
    }
  }
  streams_.out << std::flush;
}

void Talk::report(const Result<TurnOutcome>& turn, bool finished_cut_answer) {
  progress_.clear();
  if (!turn) {
    failed_ = true;
    print_error(streams_.err, turn.error().message);
    if (options_.json) streams_.out << error_json(turn.error().message) << std::endl;
    return;
  }
  if (!options_.json) {
    streams_.out << std::endl;
    return;
  }
  streams_.out << turn_json({.outcome = turn->outcome,
                             .answer = turn->answer,
                             .answer_ids = &turn->answer_ids,
                             .finished_cut_answer = finished_cut_answer,
                             .durable = turn->durable})
               << std::endl;
}

}  // namespace

Result<int> run_talk(const TalkOptions& options, const TalkStreams& streams, Holding& holding) {
  Talk talk(options, streams, holding);
  EMBER_TRY(talk.open());
  return talk.run();
}

}  // namespace ember
