// Tests of the chat templates: goldens, the pieces of a running chat, what is dropped, refusals.
#include "engine/text/chat_template.h"

#include <gtest/gtest.h>

#include "engine/text/template_text.h"
#include "engine/text/text_file.h"
#include "tests/engine/text/small_tokenizer.h"

namespace ember {
namespace {

using Ids = std::vector<TokenId>;

class ChatTemplateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Loaded once: a vocabulary of 128,000 takes seconds.
    static const auto kLoaded =
        Tokenizer::load(std::string(EMBER_SOURCE_DIR) + "/tests/data/tokenizer");
    ASSERT_TRUE(kLoaded.ok()) << kLoaded.error().message;
    tokenizer_ = kLoaded->get();
    template_ = chosen("");
  }
  std::unique_ptr<ChatTemplate> chosen(std::string_view name, std::optional<bool> thinking = {}) {
    auto found = ChatTemplate::choose(*tokenizer_, name, thinking);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return std::move(found).value();
  }
  Ids ids_of(const std::vector<Message>& messages) {
    return tokenizer_->encode(template_->render({messages, ""}, true)->text).value();
  }
  // The error of rendering with the template `name`.
  std::string error_of(std::string_view name, const ChatInput& input) {
    const auto prompt = chosen(name)->render(input, true);
    if (prompt.ok()) return "rendered: " + prompt->text;
    EXPECT_EQ(prompt.error().code, ErrorCode::kInvalidArgument);
    return prompt.error().message;
  }
  Tokenizer* tokenizer_ = nullptr;
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

TEST_F(ChatTemplateTest, RenderingsAreThoseOfThePublishedTexts) {
  const auto text =
      read_text_file(std::string(EMBER_SOURCE_DIR) + "/tests/data/templates/goldens.json.gz");
  ASSERT_TRUE(text.ok());
  size_t compared = 0;
  for (const auto& golden : nlohmann::ordered_json::parse(*text)) {
    std::optional<bool> thinking;
    if (!golden["thinking"].is_null()) thinking = golden["thinking"].get<bool>();
    const auto input = parse_messages(golden["input"].dump());
    ASSERT_TRUE(input.ok()) << input.error().message;
    const auto prompt = chosen(golden["template"].get<std::string>(), thinking)
                            ->render(*input, golden["generation_prompt"].get<bool>());
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_EQ(prompt->text, golden["text"].get<std::string>()) << golden.dump();
    ++compared;
  }
  EXPECT_GT(compared, 400U);
}

TEST_F(ChatTemplateTest, KimiK2WithToolsAsItsGuideShows) {
  const auto input = parse_messages(R"({"tools": [{"type": "function", "function": {
      "name": "get_weather", "parameters": {"type": "object", "required": ["city"]}}}],
    "messages": [{"role": "user", "content": "Rain?"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "functions.get_weather:0",
        "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}]},
      {"role": "tool", "tool_call_id": "functions.get_weather:0", "name": "get_weather",
        "content": "Sunny"}]})");
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(
      chosen("kimi-k2-tools")->render(*input, true)->text,
      "<|im_system|>tool_declare<|im_middle|>[{\"type\":\"function\",\"function\":{\"name\":"
      "\"get_weather\",\"parameters\":{\"type\":\"object\",\"required\":[\"city\"]}}}]<|im_end|>"
      "<|im_system|>system<|im_middle|>You are Kimi, an AI assistant created by Moonshot AI."
      "<|im_end|><|im_user|>user<|im_middle|>Rain?<|im_end|><|im_assistant|>assistant<|im_middle|>"
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
      "<|tool_call_argument_begin|>{\"city\": \"Oslo\"}<|tool_call_end|><|tool_calls_section_end|>"
      "<|im_end|><|im_system|>get_weather<|im_middle|>## Return of functions.get_weather:0\nSunny"
      "<|im_end|><|im_assistant|>assistant<|im_middle|>");
}

TEST_F(ChatTemplateTest, WhatIsDroppedIsTold) {
  Message answer{"assistant", "<think>why</think>because"};
  answer.reasoning = "more";
  const ChatInput input{{{"user", "x"}, answer, {"user", "y"}}, ""};
  for (const auto& [name, content_end] :
       {std::pair("deepseek-r1", 18), std::pair("deepseek-v3.1", 18), std::pair("kimi-k2", 0)}) {
    const auto prompt = chosen(name)->render(input, true);
    ASSERT_TRUE(prompt.ok());
    std::vector<std::string> fields;
    for (const DroppedText& dropped : prompt->dropped) {
      EXPECT_EQ(dropped.message, 1U);
      EXPECT_FALSE(dropped.why.empty());
      const auto end = static_cast<size_t>(content_end);
      EXPECT_TRUE(dropped.field != "content" || dropped.end == end) << dropped.end;
      fields.emplace_back(dropped.field);
    }
    std::vector<std::string> expected = {"reasoning_content"};
    if (content_end > 0) expected.emplace_back("content");
    EXPECT_EQ(fields, expected) << name;
  }
  // GLM keeps the reasoning that follows the last question, and no other.
  const auto glm = chosen("glm-4.7");
  EXPECT_EQ(glm->render(input, false)->dropped.size(), 1U);
  EXPECT_TRUE(glm->render({{{"user", "x"}, answer}, ""}, false)->dropped.empty());
  EXPECT_EQ(
      glm->render({{{"user", "x"}, {"assistant", "<think>a</think>b"}, {"user", "y"}}, ""}, false)
          ->dropped.front()
          .begin,
      7U);
}

TEST_F(ChatTemplateTest, PrefixIsGoneOnWith) {
  Message prefix{"assistant", "It is"};
  prefix.prefix = true;
  const ChatInput input{{{"user", "x"}, prefix}, ""};
  const std::string v3 = "<｜begin▁of▁sentence｜><｜User｜>x<｜Assistant｜>";
  EXPECT_EQ(template_->render(input, true)->text, v3 + "It is");
  EXPECT_EQ(chosen("deepseek-v3.1")->render(input, true)->text, v3 + "</think>It is");
  EXPECT_EQ(chosen("deepseek-v3.1", true)->render(input, true)->text, v3 + "<think>It is");
  EXPECT_EQ(chosen("deepseek-v2")->render(input, true)->text,
            "<｜begin▁of▁sentence｜>User: x\n\nAssistant: It is");
  EXPECT_TRUE(chosen("kimi-k2")->render(input, true)->text.ends_with("<|im_middle|>It is"));
  EXPECT_TRUE(chosen("glm-4.7")->render(input, true)->text.ends_with("</think>It is"));
}

TEST_F(ChatTemplateTest, PiecesOfARunningChatGiveTheWhole) {
  for (const char* name : {"deepseek-v2", "deepseek-v3", "deepseek-r1-first", "deepseek-v3.1",
                           "kimi-k2", "kimi-k2-tools", "glm-4.7"}) {
    const auto one = chosen(name, false);
    const ChatInput input{{{"system", "S"}, {"user", "u"}, {"assistant", "a"}, {"user", "v"}}, ""};
    const std::string space = std::string(name) == "deepseek-v2" ? " " : "";
    EXPECT_EQ(one->opening("S") + one->user_turn("u") + space + "a" + one->answer_end() +
                  one->user_turn("v"),
              one->render(input, true)->text)
        << name;
    const ChatInput bare{{{"user", "u"}}, ""};
    EXPECT_EQ(one->opening("") + one->user_turn("u"), one->render(bare, true)->text) << name;
  }
}

TEST_F(ChatTemplateTest, WhatCannotBeRenderedIsRefusedByName) {
  const auto says = [&](std::string_view name, const ChatInput& input, const std::string& words) {
    const std::string error = error_of(name, input);
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  says("deepseek-v3", {{{"user", "x"}, {"critic", "y"}}, ""}, "messages[1]: the template");
  says("deepseek-v3", {{{"user", "x"}, {"critic", "y"}}, ""}, "\"critic\"");
  says("deepseek-v2", {{{"tool", "x"}}, ""}, "\"tool\"");
  says("deepseek-v3.1", {{{"user", "x"}}, "[{}]"}, "tools: the template deepseek-v3.1");
  says("kimi-k2", {{{"user", "x"}}, "[{"}, "tools: found no valid JSON");
  Message calls{"assistant", "x"};
  calls.tool_calls = {{"", "function", "f", "[1]"}};
  says("deepseek-v2", {{calls}, ""}, "messages[0].tool_calls");
  says("glm-4.7", {{calls}, ""}, "messages[0].tool_calls[0].function.arguments");
  Message prefix{"assistant", "x"};
  prefix.prefix = true;
  says("deepseek-v3", {{prefix, {"user", "y"}}, ""}, "messages[0].prefix");
  Message null{"user"};
  null.has_content = false;
  says("deepseek-v3", {{null}, ""}, "messages[0].content: found null");
}

TEST(TemplateTextTest, LayoutDoesNotCountAndWordsDo) {
  const std::string plain = "{% if a %}{{ x['n'] + '\n' }}{% endif %}b{{y}}";
  for (const char* same :
       {"{%- if a -%}\n  {{ x[\"n\"]+'\\n' }}\n{%- endif -%}\n  b{{y}}\n",
        "  {% if a %}\n{{x['n'] + '\\n'}}{# {{ no }} #}{% endif %}\r\nb{{- y -}}  "}) {
    EXPECT_EQ(template_digest(same), template_digest(plain)) << same;
  }
  for (const char* other :
       {"{% if a %}{{ x['n'] + '\\t' }}{% endif %}b{{y}}",
        "{% if a %} {{ x['n'] + '\\n' }}{% endif %}b{{y}}",
        "{% if a %}{{ x['n '] + '\\n' }}{% endif %}b{{y}}",
        "{% ifa %}{{ x['n'] + '\\n' }}{% endif %}b{{y}}", "{% if a %}", "", "{{", "{% '", "{#"}) {
    EXPECT_NE(template_digest(other), template_digest(plain)) << other;
  }
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
    ASSERT_EQ(messages->messages.size(), 1U);
    EXPECT_EQ(messages->messages.front().role, "user");
    EXPECT_EQ(messages->messages.front().content, "é");
    EXPECT_EQ(messages->tools, "");
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
      {R"([{"role": "assistant", "content": null, "tool_calls": [1]}])", "messages[0].tool_calls"},
      {R"([{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f"}}]}])",
       "tool_calls[0].function: \"arguments\" is missing"},
      {R"([{"role": "assistant", "content": "", "function_call": {}}])", "function_call"},
      {R"([{"role": "assistant", "content": "", "prefix": 1}])", "messages[0].prefix"},
      {R"({"tools": {}, "messages": []})", "messages: tools: found an object"}};
  for (const auto& [text, said] : cases) {
    const auto messages = parse_messages(text);
    ASSERT_FALSE(messages.ok()) << text;
    EXPECT_EQ(messages.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(messages.error().message.find(said), std::string::npos) << messages.error().message;
  }
}

}  // namespace
}  // namespace ember
