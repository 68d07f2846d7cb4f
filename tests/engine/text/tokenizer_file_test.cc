// Tests of the tokenizer file: what is not understood is refused by name.
#include "engine/text/tokenizer_file.h"

#include <gtest/gtest.h>

#include "tests/engine/text/small_tokenizer.h"

namespace ember {
namespace {

using nlohmann::json;

class TokenizerFileTest : public ::testing::Test {
 protected:
  // The error for the small file after `path` was set to `value`.
  Error error_of(const std::string& path, const json& value) {
    json file = small_tokenizer({{"a", "b"}});
    add_token(file, "<T>");
    file[json::json_pointer(path)] = value;
    const auto parsed = parse_tokenizer_file(file.dump(), "file");
    return parsed.ok() ? Error{ErrorCode::kInvalidArgument, "accepted"} : parsed.error();
  }
  void expect(const std::string& path, const json& value, ErrorCode code, const std::string& said) {
    const Error error = error_of(path, value);
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(said), std::string::npos) << error.message;
  }
};

TEST_F(TokenizerFileTest, UnknownComponentsAreNamed) {
  const auto unsupported = ErrorCode::kUnsupported;
  expect("/model/type", "Unigram", unsupported, "the model Unigram");
  expect("/normalizer", {{"type", "NFC"}}, unsupported, "the normalizer NFC");
  expect("/pre_tokenizer/type", "Metaspace", unsupported, "the pre-tokenizer Metaspace");
  expect("/post_processor", {{"type", "TemplateProcessing"}}, unsupported, "TemplateProcessing");
  expect("/decoder/type", "Fuse", unsupported, "the decoder Fuse");
  expect("/truncation", {{"max_length", 5}}, unsupported, "truncation");
  expect("/padding", {{"strategy", "x"}}, unsupported, "padding");
  expect("/extra", 1, unsupported, "\"extra\"");
}

TEST_F(TokenizerFileTest, ModelOptionsThatChangeIdsAreNamed) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, json>>{{"dropout", 0.1},
                                                 {"unk_token", "<unk>"},
                                                 {"continuing_subword_prefix", "##"},
                                                 {"end_of_word_suffix", "</w>"},
                                                 {"fuse_unk", true},
                                                 {"byte_fallback", true},
                                                 {"novelty", true}}) {
    expect("/model/" + key, value, ErrorCode::kUnsupported, key);
  }
}

TEST_F(TokenizerFileTest, ContradictionsNameThePlace) {
  const auto invalid = ErrorCode::kInvalidArgument;
  expect("/model/vocab/!", "x", invalid, "file: model.vocab[\"!\"]: found \"x\"");
  expect("/model/vocab/!", 1, invalid, "an id that no other token has");
  expect("/model/merges/0", "a b c", invalid, "file: model.merges[0]");
  expect("/model/merges/0", json::array({"a", "zz"}), invalid, "model.merges[0]");
  expect("/added_tokens/0/id", 999, invalid, "added_tokens[0].id: found 999");
  expect("/added_tokens/0/content", "", invalid, "added_tokens[0].content");
  expect("/added_tokens/0/lstrip", 1, invalid, "added_tokens[0].lstrip: found 1");
  expect("/decoder", nullptr, invalid, "decoder: found null");
  expect("/pre_tokenizer/use_regex", "no", invalid, "pre_tokenizer.use_regex");
}

TEST_F(TokenizerFileTest, SplitsAreChecked) {
  json split = {{"type", "Split"},
                {"pattern", {{"Regex", "("}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  expect("/pre_tokenizer", split, ErrorCode::kUnsupported, "Oniguruma");
  split["pattern"] = {{"Glob", "*"}};
  expect("/pre_tokenizer", split, ErrorCode::kUnsupported, "Glob");
  split["pattern"] = {{"String", "x"}};
  split["behavior"] = "Shuffled";
  expect("/pre_tokenizer", split, ErrorCode::kUnsupported, "Shuffled");
  split.erase("invert");
  split["behavior"] = "Removed";
  expect("/pre_tokenizer", split, ErrorCode::kInvalidArgument, "\"invert\" is missing");
}

TEST_F(TokenizerFileTest, DeepSequencesAreRefused) {
  json nested = {{"type", "Sequence"}, {"pretokenizers", json::array()}};
  for (int i = 0; i < 100; ++i) {
    nested = {{"type", "Sequence"}, {"pretokenizers", json::array({nested})}};
  }
  expect("/pre_tokenizer", nested, ErrorCode::kUnsupported, "Sequence");
}

TEST_F(TokenizerFileTest, NotJsonIsAnError) {
  for (const char* text : {"", "{", "[]", "\xFF", "{\"model\": }"}) {
    EXPECT_FALSE(parse_tokenizer_file(text, "file").ok()) << text;
  }
}

TEST_F(TokenizerFileTest, BothFormsOfMergesAreRead) {
  json file = small_tokenizer({{"a", "b"}, {"ab", "c"}});
  const auto pairs = parse_tokenizer_file(file.dump(), "file");
  file["model"]["merges"] = {"#version: 0.2", "a b", "ab c"};
  const auto strings = parse_tokenizer_file(file.dump(), "file");
  ASSERT_TRUE(pairs.ok() && strings.ok());
  ASSERT_EQ(pairs->model.merges.size(), 2U);
  ASSERT_EQ(strings->model.merges.size(), 2U);
  EXPECT_EQ(pairs->model.merges[1].result, strings->model.merges[1].result);
}

}  // namespace
}  // namespace ember
