// Talk: opens or resumes a conversation, finishes a cut answer, then answers line by line.
#include "tools/commands/talk.h"

#include <chrono>
#include <memory>
#include <streambuf>
#include <string>
#include <thread>
#include <utility>

#include "tools/commands/exit_code.h"
#include "tools/commands/progress.h"
#include "tools/commands/report.h"
#include "tools/commands/text_form.h"
#include "tools/commands/turn_feed.h"

namespace ember {
namespace {

constexpr size_t kMostLineBytes = size_t{1} << 20;

constexpr int64_t kLeavePatienceUs = 2'000'000;
constexpr int64_t kLookUs = 100'000;  // how soon an end is noticed while an answer is computed

Error holder_ends() { return {ErrorCode::kCancelled, "the process that answers is ending"}; }

// On the engine thread.
Result<std::unique_ptr<ChatSession>> open_session(const TalkOptions& options, Holding& holding) {
  Engine& engine = holding.engine();
  const ChatTemplate& chat_template = *holding.chat_template();
  if (!options.resume) return ChatSession::begin(engine, chat_template, options.system);
  if (engine.cache().conversations() == nullptr) {
    const StoreHealth& health = engine.cache().health();
    return Error{ErrorCode::kInvalidArgument,
                 "conversation " + *options.resume + " cannot be resumed: the store is " +
                     std::string(store_state_name(health.state)) +
                     (health.reason.empty() ? "" : " (" + health.reason + ")")};
  }
  EMBER_ASSIGN(std::unique_ptr<ChatSession> session,
               ChatSession::resume(engine, chat_template, *options.resume));
  const std::string& id = session->conversation().id;
  if (!holding.keeps(id)) return session;
  return Error{ErrorCode::kBusy, "conversation " + id + " is open in another terminal"};
}

class Talk {
 public:
  Talk(const TalkOptions& options, const TalkStreams& streams, Holding& holding)
      : options_(options),
        streams_(streams),
        holding_(holding),
        progress_(streams.err, streams.progress) {}
  ~Talk() {
    if (session_ != nullptr) holding_.call([this] { holding_.let_go(*session_); });
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  // Waits a little for a terminal that has just gone to leave the conversation.
  Status open();
  int run();

 private:
  Status try_open();
  bool read_line(std::string& line);
  using Start = std::function<void(const TurnOptions&, ChatSession::TurnDone)>;
  Result<TurnOutcome> turn(const Start& start);
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

Status Talk::open() {
  for (int64_t waited_us = 0;; waited_us += kLookUs) {
    Status opened = try_open();
    const bool busy = !opened.ok() && opened.error().code == ErrorCode::kBusy;
    if (!busy || waited_us >= kLeavePatienceUs || streams_.stopped()) return opened;
    std::this_thread::sleep_for(std::chrono::microseconds(kLookUs));
  }
}

Status Talk::try_open() {
  Status opened = holder_ends();
  std::string first_line;
  std::string cut_question;
  holding_.call([&] {
    Result<std::unique_ptr<ChatSession>> session = open_session(options_, holding_);
    opened = session.ok() ? Status() : session.error();
    if (!session.ok()) return;
    session_ = &holding_.keep(std::move(session).value());
    const Conversation& conversation = session_->conversation();
    unfinished_ = session_->has_cut_answer();
    if (unfinished_) cut_question = conversation.turns.back().user;
    first_line = options_.json ? ready_json({.conversation = &conversation,
                                             .resumed = options_.resume.has_value(),
                                             .cut_answer = unfinished_,
                                             .context_tokens = holding_.engine().context_tokens(),
                                             .load_us = holding_.engine().load_us(),
                                             .health = holding_.engine().cache().health()})
                               : "conversation " + conversation.id + ", " +
                                     std::to_string(conversation.turns.size()) + " turns";
  });
  EMBER_TRY(std::move(opened));
  (options_.json ? streams_.out : streams_.err) << first_line << std::endl;
  if (unfinished_ && !options_.json && options_.interactive) {
    streams_.out << "> " << printable(cut_question) << std::endl;
  }
  return {};
}

// Of a stranger's input no more is kept than a question may have.
bool Talk::read_line(std::string& line) {
  line.clear();
  const std::istream::sentry ready(streams_.in, true);  // what waits in `out` is sent first
  if (!ready) return false;
  std::streambuf& input = *streams_.in.rdbuf();
  for (int c = input.sbumpc(); c != '\n'; c = input.sbumpc()) {
    if (c == std::char_traits<char>::eof()) {
      streams_.in.setstate(std::ios::eofbit);
      return !line.empty();
    }
    if (line.size() == kMostLineBytes) {
      failed_ = true;
      print_error(streams_.err,
                  "a line of input is longer than " + std::to_string(kMostLineBytes) + " bytes");
      return false;
    }
    line += static_cast<char>(c);
  }
  return true;
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
    report(turn([this, &line](const TurnOptions& options, ChatSession::TurnDone done) {
             session_->start_ask(line, options, std::move(done));
           }),
           false);
    // The question stands and its answer failed: only another run can go on with it.
    if (!answers()) return kExitFailed;
  }
  return failed_ && !options_.interactive ? kExitFailed : kExitOk;
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
  gone_ = !holding_.call(begin);
  bool cancelled = false;
  while (!gone_) {
    TurnFeed::News news = feed->take(kLookUs);
    print(news);
    if (news.ended) {
      gone_ = !holding_.call([this] { unfinished_ = session_->has_cut_answer(); });
      return *std::move(news.ended);
    }
    if (cancelled || !(streams_.stopped() || !streams_.out)) continue;
    cancelled = true;
    gone_ = !holding_.call([this] { session_->cancel(); });
  }
  return holder_ends();
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
