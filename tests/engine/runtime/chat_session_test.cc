// Conversations: what survives, what is said again, and what is refused.
#include "engine/runtime/chat_session.h"

#include "tests/engine/runtime/engine_harness.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

constexpr const char* kSystem =
    "You keep the handbook. Answer shortly and only from what is written here.\n"
    "The keeper of the Desomar palace is Vera Sovelton.\n"
    "The opening month of the green harbour is August.\n";
constexpr const char* kFirst = "What is the keeper of the Desomar palace?";
constexpr const char* kSecond = "What is the opening month of the green harbour?";

TurnOptions forty_tokens() {
  TurnOptions options;
  options.max_tokens = 40;
  return options;
}

class ChatSessionTest : public testing::Test {
 protected:
  void open(const std::string& store) {
    template_.reset();
    engine_.reset();
    EngineOptions options = small_options(store);
    options.model_path = demo_model_path();
    options.need_tokenizer = true;
    engine_ = must_open(options);
    auto chosen = ChatTemplate::choose(engine_->tokenizer(), "");
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    template_ = std::move(chosen).value();
  }
  std::unique_ptr<ChatSession> begin() {
    return std::move(ChatSession::begin(*engine_, *template_, kSystem)).value();
  }
  std::unique_ptr<ChatSession> resume(const std::string& id) {
    auto session = ChatSession::resume(*engine_, *template_, id);
    EXPECT_TRUE(session.ok()) << session.error().message;
    return std::move(session).value();
  }
  TurnOutcome ask(ChatSession& session, const char* user) {
    auto turn = session.ask(user, forty_tokens());
    EXPECT_TRUE(turn.ok()) << turn.error().message;
    return std::move(turn).value();
  }

  static void start(ChatSession& session, const char* user, const TurnOptions& options,
                    ChatSession::TurnDone done) {
    session.start_ask(user, session.tokens_of(user).value(), options, std::move(done));
  }

  TempFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ChatTemplate> template_;
};

TEST_F(ChatSessionTest, AResumedConversationGoesOnAsIfItHadNeverStopped) {
  open(folder_ / "twin");
  auto twin = begin();
  const TurnOutcome twin_first = ask(*twin, kFirst);
  const TurnOutcome twin_second = ask(*twin, kSecond);
  EXPECT_NE(twin_first.answer.find("Vera Sovelton"), std::string::npos) << twin_first.answer;

  open(folder_ / "store");
  std::string id;
  size_t computed_before = 0;
  {
    auto session = begin();
    id = session->conversation().id;
    const TurnOutcome first = ask(*session, kFirst);
    EXPECT_TRUE(first.durable);
    EXPECT_EQ(first.answer_ids, twin_first.answer_ids);
    computed_before = first.outcome.prompt_tokens + first.answer_ids.size();
  }
  open(folder_ / "store");
  auto session = resume("last");
  EXPECT_EQ(session->conversation().id, id);
  EXPECT_FALSE(session->has_cut_answer());
  const TurnOutcome second = ask(*session, kSecond);
  EXPECT_EQ(second.answer_ids, twin_second.answer_ids);
  EXPECT_EQ(second.outcome.restore.restored_tokens[static_cast<size_t>(Tier::kDisk)],
            computed_before);
}

TEST_F(ChatSessionTest, AFinishedTurnHitsAgainWhereTheTemplateDropsReasoning) {
  const auto choose = [&] {
    template_ = ChatTemplate::choose(engine_->tokenizer(), "deepseek-v3.1", true).value();
  };
  open(folder_ / "store");
  choose();
  size_t computed = 0;
  {
    auto session = begin();
    const TurnOutcome first = ask(*session, kFirst);
    computed = first.outcome.prompt_tokens + first.answer_ids.size();
  }
  open(folder_ / "store");
  choose();
  auto session = resume("last");
  const TurnOutcome second = ask(*session, kSecond);
  EXPECT_EQ(second.outcome.restore.restored_tokens[static_cast<size_t>(Tier::kDisk)], computed);
  // What the template drops when it renders a whole conversation is still there as sampled.
  const std::vector<Turn>& turns = session->conversation().turns;
  EXPECT_EQ(
      turns[1].prompt,
      engine_->encode(template_->answer_end() + template_->user_turn(kSecond)).value());
}

TEST_F(ChatSessionTest, ACutAnswerIsFinishedWithTheSameTokens) {
  open(folder_ / "store");
  auto session = begin();
  const TurnOutcome whole = ask(*session, kFirst);
  ASSERT_GT(whole.answer_ids.size(), 4u);
  // What a kill after four synced tokens leaves behind.
  Turn cut = session->conversation().turns.back();
  cut.answer.resize(4);
  cut.state = TurnState::kAsked;
  cut.finish_reason.clear();
  ASSERT_TRUE(engine_->cache().conversations()->put_turn(session->conversation().id, 0, cut).ok());

  auto resumed = resume(session->conversation().id);
  ASSERT_TRUE(resumed->has_cut_answer());
  std::string shown;
  TurnOptions options;
  options.on_text = [&shown](TokenId, std::string_view text) { shown += text; };
  auto finished = resumed->finish_answer(options);
  ASSERT_TRUE(finished.ok()) << finished.error().message;
  EXPECT_EQ(finished.value().answer_ids, whole.answer_ids);
  EXPECT_EQ(finished.value().answer, whole.answer);
  EXPECT_EQ(shown, whole.answer);
  EXPECT_FALSE(resumed->has_cut_answer());
}

TEST_F(ChatSessionTest, AQuestionThatWasStoredAsTextAloneIsAskedWhenItsConversationGoesOn) {
  open(folder_ / "store");
  auto session = begin();
  ask(*session, kFirst);
  const TurnOutcome second = ask(*session, kSecond);
  Conversation branch = session->conversation();
  branch.id = new_conversation_id();
  Turn question;
  question.user = kSecond;
  question.max_tokens = branch.turns[1].max_tokens;
  branch.turns[1] = question;
  Conversations& conversations = *engine_->cache().conversations();
  ASSERT_TRUE(conversations.put_head(branch).ok());
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(conversations.put_turn(branch.id, i, branch.turns[i]).ok());
  }
  auto resumed = resume(branch.id);
  ASSERT_TRUE(resumed->has_cut_answer());
  const auto finished = resumed->finish_answer({});
  ASSERT_TRUE(finished.ok()) << finished.error().message;
  EXPECT_EQ(finished->answer_ids, second.answer_ids);
  EXPECT_EQ(resumed->conversation().turns[1].prompt, session->conversation().turns[1].prompt);
}

TEST_F(ChatSessionTest, WithoutAStoreItIsAnsweredAndNotDurable) {
  open("");
  auto session = begin();
  const TurnOutcome turn = ask(*session, kFirst);
  EXPECT_FALSE(turn.durable);
  EXPECT_NE(turn.answer.find("Vera Sovelton"), std::string::npos);
}

TEST_F(ChatSessionTest, UnknownConversationsAndOtherModelsAreRefused) {
  open(folder_ / "store");
  EXPECT_FALSE(ChatSession::resume(*engine_, *template_, "last").ok());
  EXPECT_FALSE(ChatSession::resume(*engine_, *template_, "0123456789abcdef").ok());
  Conversation foreign;
  foreign.id = "00000000000000aa";
  foreign.name_space.bytes[0] = 1;
  foreign.template_name = std::string(template_->name());
  ASSERT_TRUE(engine_->cache().conversations()->put_head(foreign).ok());
  const auto refused = ChatSession::resume(*engine_, *template_, foreign.id);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("another model"), std::string::npos);
}

TEST_F(ChatSessionTest, TwoConversationsAreAnsweredAtOnceAsEachAlone) {
  open(folder_ / "alone");
  auto alone = begin();
  const std::vector<TokenId> first = ask(*alone, kFirst).answer_ids;
  alone = begin();
  const std::vector<TokenId> second = ask(*alone, kSecond).answer_ids;
  alone.reset();

  open(folder_ / "both");
  auto one = begin();
  auto other = begin();
  std::vector<TokenId> firsts;
  std::vector<TokenId> seconds;
  size_t drawn_of_both = 0;  // tokens of the second while the first was not done
  TurnOptions options = forty_tokens();
  start(*one, kFirst, options, [&](const Result<TurnOutcome>& turn) {
    EXPECT_TRUE(turn.ok() && turn->durable);
    firsts = turn->answer_ids;
  });
  options.on_text = [&](TokenId, std::string_view) { drawn_of_both += firsts.empty() ? 1u : 0u; };
  start(*other, kSecond, options, [&](const Result<TurnOutcome>& turn) {
    EXPECT_TRUE(turn.ok() && turn->durable);
    seconds = turn->answer_ids;
  });
  engine_->scheduler().run_until([&] { return !firsts.empty() && !seconds.empty(); });
  EXPECT_EQ(firsts, first);
  EXPECT_EQ(seconds, second);
  EXPECT_GT(drawn_of_both, 0u);
}

TEST_F(ChatSessionTest, ACancelledTurnIsACutOneAndASessionMayGoInItsMiddle) {
  open(folder_ / "store");
  auto session = begin();
  const TurnOutcome whole = ask(*session, kFirst);
  session = begin();
  const std::string id = session->conversation().id;
  TurnOptions options = forty_tokens();
  size_t drawn = 0;
  bool cancelled = false;
  options.on_text = [&](TokenId, std::string_view) { ++drawn; };
  start(*session, kFirst, options, [&](const Result<TurnOutcome>& turn) {
    cancelled = !turn.ok() && turn.error().code == ErrorCode::kCancelled;
  });
  engine_->scheduler().run_until([&] { return drawn == 2; });
  session->cancel();
  EXPECT_TRUE(cancelled);
  ASSERT_TRUE(session->has_cut_answer());

  // Gone while its question is on the way to the disk, and while its answer is drawn.
  session = begin();
  start(*session, kSecond, options, [](const Result<TurnOutcome>&) { FAIL(); });
  session = begin();
  drawn = 0;
  start(*session, kSecond, options, [](const Result<TurnOutcome>&) { FAIL(); });
  engine_->scheduler().run_until([&] { return drawn == 2; });
  session.reset();

  auto resumed = resume(id);
  ASSERT_TRUE(resumed->has_cut_answer());
  const auto finished = resumed->finish_answer(forty_tokens());
  ASSERT_TRUE(finished.ok()) << finished.error().message;
  EXPECT_EQ(finished->answer_ids, whole.answer_ids);
}

TEST_F(ChatSessionTest, AConversationThatNoLongerFitsIsRefusedAndUnchanged) {
  open(folder_ / "store");
  auto session = begin();
  std::string long_text;
  for (int i = 0; i < 5000; ++i) long_text += "horse ";
  const auto refused = session->ask(long_text, forty_tokens());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(session->conversation().turns.empty());
  EXPECT_FALSE(ask(*session, kFirst).answer.empty());
}

}  // namespace
}  // namespace ember
