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
  expect("/normalizer", {{"type", "Precompiled"}}, unsupported, "the normalizer Precompiled");
  expect("/normalizer", {{"type", "NFC"}, {"version", 9}}, unsupported, "normalizer: the key");
  expect("/pre_tokenizer/type", "UnicodeScripts", unsupported, "the pre-tokenizer UnicodeScripts");
  expect("/post_processor", {{"type", "BertProcessing"}}, unsupported, "BertProcessing");
  expect("/decoder/type", "WordPiece", unsupported, "the decoder WordPiece");
  expect("/truncation", {{"max_length", 5}}, unsupported, "truncation");
  expect("/padding", {{"strategy", "x"}}, unsupported, "padding");
  expect("/extra", 1, unsupported, "\"extra\"");
}

TEST_F(TokenizerFileTest, ModelOptionsThatChangeIdsAreNamed) {
  expect("/model/dropout", 0.1, ErrorCode::kUnsupported, "dropout");
  expect("/model/novelty", true, ErrorCode::kUnsupported, "novelty");
  for (const char* key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    expect(std::string("/model/") + key, 1, ErrorCode::kInvalidArgument, key);
  }
  expect("/model/unk_token", "<unk>", ErrorCode::kInvalidArgument, "a token of the vocabulary");
}

TEST_F(TokenizerFileTest, PartsOfComponentsAreChecked) {
  const auto invalid = ErrorCode::kInvalidArgument;
  const auto unsupported = ErrorCode::kUnsupported;
  const json metaspace = {{"type", "Metaspace"}, {"replacement", "_"}};
  const auto with = [](json file, const char* key, const json& value) {
    file[key] = value;
    return file;
  };
  expect("/decoder", with(metaspace, "replacement", "__"), invalid, "a character");
  expect("/decoder", with(metaspace, "prepend_scheme", "last"), unsupported, "the scheme last");
  expect("/pre_tokenizer",
         with(with(metaspace, "prepend_scheme", "first"), "add_prefix_space", false), invalid,
         "never");
  expect("/decoder", {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}}, invalid,
         "decoder.start");
  expect("/decoder", {{"type", "Replace"}, {"pattern", {{"Regex", "("}}}, {"content", ""}},
         unsupported, "Oniguruma");
  json frame = {{"type", "TemplateProcessing"},
                {"single", json::array({{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}})},
                {"pair", json::array()},
                {"special_tokens", json::object()}};
  expect("/post_processor", frame, invalid, "an id of special_tokens");
  frame["single"] = json::array();
  expect("/post_processor", frame, invalid, "a Sequence");
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
