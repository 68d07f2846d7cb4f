// Tests of the chat template: V3's known ids, the pieces of a running chat, refusals.
#include "engine/text/chat_template.h"

#include <gtest/gtest.h>

#include "tests/engine/text/small_tokenizer.h"

namespace ember {
namespace {

using Ids = std::vector<TokenId>;

class ChatTemplateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Tokenizer::load(std::string(EMBER_SOURCE_DIR) + "/tests/data/tokenizer");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    tokenizer_ = std::move(*loaded);
    auto chosen = ChatTemplate::choose(*tokenizer_, "");
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    template_ = std::move(*chosen);
  }
  Ids ids_of(const std::vector<Message>& messages) {
    return tokenizer_->encode(template_->render(messages, true).value()).value();
  }
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
};

TEST_F(ChatTemplateTest, KnownIdsOfDeepSeekV3) {
  EXPECT_EQ(template_->name(), "deepseek-v3");
  EXPECT_EQ(ids_of({{"user", "Hello"}}), (Ids{0, 128803, 19923, 128804}));
  EXPECT_EQ(ids_of({{"system", "You are a helpful assistant."}, {"user", "Hello"}}),
            (Ids{0, 3476, 477, 260, 11502, 22896, 16, 128803, 19923, 128804}));
  EXPECT_EQ(ids_of({{"user", "1+1=?"}, {"assistant", "2"}, {"user", "Why?"}}),
            (Ids{0, 128803, 19, 13, 19, 127252, 128804, 20, 1, 128803, 11687, 33, 128804}));
}

TEST_F(ChatTemplateTest, SystemMessagesGoToTheFront) {
  const std::vector<Message> messages = {
      {"system", "A"}, {"user", "x"}, {"system", ""}, {"system", "B"}};
  EXPECT_EQ(template_->render(messages, false).value(),
            "<｜begin▁of▁sentence｜>A\n\n\n\nB<｜User｜>x");
}

TEST_F(ChatTemplateTest, PiecesOfARunningChatGiveTheWhole) {
  const std::string whole =
      template_->render({{"system", "S"}, {"user", "u"}, {"assistant", "a"}, {"user", "v"}}, true)
          .value();
  EXPECT_EQ(template_->opening("S") + template_->user_turn("u") + "a" + template_->answer_end() +
                template_->user_turn("v"),
            whole);
}

TEST_F(ChatTemplateTest, OtherRolesAreRefusedByName) {
  const auto text = template_->render({{"user", "x"}, {"tool", "y"}}, true);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(text.error().message.find("messages[1]"), std::string::npos);
  EXPECT_NE(text.error().message.find("\"tool\""), std::string::npos);
}

TEST_F(ChatTemplateTest, UnknownTemplateNeedsAName) {
  const TempFolder folder;
  folder.write("tokenizer.json", small_tokenizer({}).dump());
  for (const char* config : {"{}", R"({"chat_template": "{{ messages }}"})"}) {
    folder.write("tokenizer_config.json", config);
    const auto other = Tokenizer::load(folder.path());
    ASSERT_TRUE(other.ok());
    const auto chosen = ChatTemplate::choose(**other, "");
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(chosen.error().message.find("deepseek-v3"), std::string::npos);
    EXPECT_TRUE(ChatTemplate::choose(**other, "deepseek-v3").ok());
    EXPECT_FALSE(ChatTemplate::choose(**other, "chatml").ok());
  }
}

TEST_F(ChatTemplateTest, DemoModelCarriesTheSameTemplate) {
  const auto demo = Tokenizer::load(std::string(EMBER_SOURCE_DIR) + "/models/demo");
  ASSERT_TRUE(demo.ok());
  EXPECT_EQ((*demo)->chat_template(), tokenizer_->chat_template());
  EXPECT_TRUE(ChatTemplate::choose(**demo, "").ok());
}

TEST(MessagesTest, BothFormsAreRead) {
  for (const char* text : {R"([{"role": "user", "content": "é", "name": "n", "tool_calls": null}])",
                           R"({"model": "m", "messages": [{"role": "user", "content": "é"}]})"}) {
    const auto messages = parse_messages(text);
    ASSERT_TRUE(messages.ok()) << messages.error().message;
    ASSERT_EQ(messages->size(), 1U);
    EXPECT_EQ(messages->front().role, "user");
    EXPECT_EQ(messages->front().content, "é");
  }
}

TEST(MessagesTest, MistakesNameThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not valid JSON"},
      {"5", "messages: found 5, expected an array"},
      {"[]", "at least one message"},
      {"{}", "\"messages\" is missing"},
      {"[5]", "messages[0]: found 5, expected an object"},
      {R"([{"content": "x"}])", "messages[0]: \"role\" is missing"},
      {R"([{"role": "user"}])", "messages[0]: \"content\" is missing"},
      {R"([{"role": "user", "content": null}])", "messages[0].content: found null"},
      {R"([{"role": "user", "content": [{"type": "text"}]}])", "found an array, expected a string"},
      {R"([{"role": "assistant", "content": null, "tool_calls": [1]}])", "messages[0].tool_calls"}};
  for (const auto& [text, said] : cases) {
    const auto messages = parse_messages(text);
    ASSERT_FALSE(messages.ok()) << text;
    EXPECT_EQ(messages.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(messages.error().message.find(said), std::string::npos) << messages.error().message;
  }
}

}  // namespace
}  // namespace ember
