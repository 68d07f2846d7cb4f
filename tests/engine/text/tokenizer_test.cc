// Tests of the tokenizer: DeepSeek-V3's 600 cases, known ids, the demo model's file, odd input.
#include "engine/text/tokenizer.h"

#include <gtest/gtest.h>

#include "engine/text/text_file.h"
#include "tests/engine/text/small_tokenizer.h"

namespace ember {
namespace {

const std::string kV3Folder = std::string(EMBER_SOURCE_DIR) + "/tests/data/tokenizer";
const std::string kDemoFolder = std::string(EMBER_SOURCE_DIR) + "/models/demo";

Tokenizer& v3() {
  static const auto loaded = Tokenizer::load(kV3Folder);
  EMBER_CHECK(loaded.ok(), "the test's tokenizer");
  return **loaded;
}

using Ids = std::vector<TokenId>;

TEST(TokenizerTest, DeepSeekV3CasesAreEqualBothWays) {
  const auto text = read_text_file(kV3Folder + "/cases.json.gz");
  ASSERT_TRUE(text.ok());
  const auto cases = nlohmann::json::parse(*text)["cases"];
  ASSERT_EQ(cases.size(), 600U);
  for (const auto& one : cases) {
    const auto& input = one["text"].get_ref<const std::string&>();
    const auto ids = v3().encode(input);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(*ids, one["ids"].get<Ids>()) << input;
    EXPECT_EQ(v3().decode(*ids, false).value(), input);
  }
}

TEST(TokenizerTest, KnownIdsOfDeepSeekV3) {
  const std::pair<const char*, Ids> cases[] = {
      {"DeepSeek", {53091, 4374, 1465}},
      {"Hello, world!", {19923, 14, 2058, 3}},
      {"I'm DeepSeek's model: don't, we'll see",
       {43, 4571, 22651, 4374, 1465, 734, 2645, 28, 2090, 1664, 14, 579, 5922, 1762}},
      {"1234567890 3.14159 2026-11-29",
       {6895, 18009, 25744, 18, 223, 21, 16, 9926, 3318, 223, 939, 24, 15, 779, 15, 1557}},
      {"你好，世界！DeepSeek 是一个模型。",
       {30594, 303, 3427, 1175, 53091, 4374, 1465, 223, 6715, 8842, 320}},
      {"a  b   c\n\n  d\t\te \n", {67, 223, 291, 262, 274, 271, 223, 283, 200, 61995, 539}},
      {"\r\n\r\nx\r\n", {204, 201, 204, 201, 90, 204, 201}},
      {"  ", {262}},
      {"안녕하세요 세계", {31404, 11939, 246, 4567, 73527, 76878}},
      {"def f(x):\n    return x**2  # comment\n",
       {3465, 285, 4042, 3395, 361, 1354, 1527, 666, 20, 223, 1823, 7006, 201}},
      {"x<｜end▁of▁sentence｜>y", {90, 1, 91}}};
  for (const auto& [text, ids] : cases) EXPECT_EQ(v3().encode(text).value(), ids) << text;
}

TEST(TokenizerTest, BosComesOnlyWhenAskedFor) {
  EXPECT_EQ(v3().encode("Hello", true).value(), (Ids{0, 19923}));
  EXPECT_EQ(v3().bos_id(), 0);
  EXPECT_TRUE(v3().adds_bos());
  EXPECT_EQ(v3().eos_text(), "<｜end▁of▁sentence｜>");
  EXPECT_EQ(v3().vocab_size(), 128815);
  EXPECT_EQ(v3().token_id("<｜User｜>"), 128803);
  EXPECT_EQ(v3().token_id("Hello"), std::nullopt) << "not an added token";
  const auto small = load_json(small_tokenizer({}));
  ASSERT_TRUE(small.ok());
  EXPECT_FALSE((*small)->encode("x", true).ok());
}

TEST(TokenizerTest, TemplateOfSpecialTokensStandsAroundAWholeText) {
  auto file = small_tokenizer({});
  const int start = add_token(file, "<s>", {"special"});
  const int end = add_token(file, "</s>", {"special"});
  file["post_processor"] = nlohmann::json::parse(R"({"type": "TemplateProcessing", "pair": [],
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "</s>", "type_id": 0}}], "special_tokens": {
      "<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]},
      "</s>": {"id": "</s>", "ids": [257], "tokens": ["</s>"]}}})");
  const TempFolder folder;
  folder.write("tokenizer.json", file.dump());
  // The template's BOS and the config's are one; a config may add one that the template lacks.
  const std::tuple<const char*, bool, Ids> cases[] = {
      {"{}", true, {start, 0, end}},
      {R"({"bos_token": "<s>", "add_bos_token": true})", true, {start, 0, end}},
      {R"({"bos_token": "</s>", "add_bos_token": true})", true, {end, start, 0, end}},
      {R"({"bos_token": "</s>", "add_bos_token": false})", false, {start, 0, end}}};
  for (const auto& [config, adds, ids] : cases) {
    folder.write("tokenizer_config.json", config);
    const auto loaded = Tokenizer::load(folder.path());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ((*loaded)->adds_bos(), adds) << config;
    EXPECT_EQ((*loaded)->encode("!", true).value(), ids) << config;
    EXPECT_EQ((*loaded)->encode("!").value(), Ids{0});
  }
}

TEST(TokenizerTest, SpecialTokensAreLeftOutOnRequestOnly) {
  const Ids ids = {0, 128803, 19923, 1};
  EXPECT_EQ(v3().decode(ids, false).value(),
            "<｜begin▁of▁sentence｜><｜User｜>Hello<｜end▁of▁sentence｜>");
  EXPECT_EQ(v3().decode(ids, true).value(), "<｜User｜>Hello") << "User is added, not special";
}

TEST(TokenizerTest, ForeignIdsAndBytesAreErrors) {
  for (const TokenId id : {-1, 128815, 2000000000}) {
    const auto text = v3().decode(Ids{19923, id}, false);
    ASSERT_FALSE(text.ok());
    EXPECT_NE(text.error().message.find(std::to_string(id)), std::string::npos);
  }
  const auto ids = v3().encode("ab\xFF");
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().message.find("byte 2"), std::string::npos) << ids.error().message;
}

TEST(TokenizerTest, DemoModelRoundTripsItsHandbook) {
  auto demo = Tokenizer::load(kDemoFolder);
  ASSERT_TRUE(demo.ok()) << demo.error().message;
  const auto handbook = read_text_file(kDemoFolder + "/handbook.txt");
  ASSERT_TRUE(handbook.ok());
  const auto ids = (*demo)->encode(*handbook);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ((*demo)->decode(*ids, false).value(), *handbook);
  EXPECT_EQ((*demo)->vocab_size(), 4096);
}

TEST(TokenizerTest, OneMegabyteOfOneCharacterIsQuick) {
  for (const char* character : {"a", " ", "\n", "7", "!", "你"}) {
    std::string text;
    while (text.size() < size_t{1} << 20) text += character;
    const auto ids = v3().encode(text);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(v3().decode(*ids, false).value(), text);
  }
}

TEST(TokenizerTest, AddedTokenIsDecodedAsTheOriginalDoes) {
  auto file = small_tokenizer({});
  const int bytes = add_token(file, "Ġé");  // every character stands for a byte
  const int text = add_token(file, "你 é", {"special"});
  auto tokenizer = load_json(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->encode("Ġé你 é").value(), (Ids{bytes, text}));
  EXPECT_EQ((*tokenizer)->decode(Ids{bytes, text}, false).value(), " \uFFFD你 é");
  EXPECT_EQ((*tokenizer)->token_bytes(bytes).value(), " \xE9");
}

TEST(TokenizerTest, MissingFilesAreNamed) {
  const TempFolder folder;
  for (const std::string& path : {folder.path(), folder.path() + "/none.json"}) {
    const auto loaded = Tokenizer::load(path);
    ASSERT_FALSE(loaded.ok());
    EXPECT_NE(loaded.error().message.find(path), std::string::npos);
  }
}

TEST(TokenizerTest, ConfigIsChecked) {
  const TempFolder folder;
  folder.write("tokenizer.json", small_tokenizer({}).dump());
  for (const char* config : {R"({"bos_token": "<none>"})", R"({"add_bos_token": true})",
                             R"({"chat_template": 5})", R"({"bos_token": 5})", "[]", "{"}) {
    folder.write("tokenizer_config.json", config);
    const auto loaded = Tokenizer::load(folder.path());
    ASSERT_FALSE(loaded.ok()) << config;
    EXPECT_NE(loaded.error().message.find("tokenizer_config.json"), std::string::npos);
  }
  folder.write("tokenizer_config.json",
               R"({"bos_token": {"content": "!"}, "chat_template": [
                   {"name": "tool", "template": "T"}, {"name": "default", "template": "D"}]})");
  const auto loaded = Tokenizer::load(folder.path());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)->chat_template(), "D");
  EXPECT_EQ((*loaded)->bos_id(), 0);
}

}  // namespace
}  // namespace ember
