// Tests of the stream decoder: whole characters only, and the same text as decode().
#include <gtest/gtest.h>

#include "base/prng.h"
#include "engine/text/utf8.h"
#include "tests/engine/text/small_tokenizer.h"

namespace ember {
namespace {

TEST(StreamDecoderTest, NeverEmitsHalfACharacter) {
  auto tokenizer = load_json(small_tokenizer({}));  // every byte a token of its own
  ASSERT_TRUE(tokenizer.ok());
  const std::string text = "aé你😀\n";
  StreamDecoder decoder(**tokenizer, false);
  std::string streamed;
  const auto ids = (*tokenizer)->encode(text);
  ASSERT_TRUE(ids.ok());
  for (const TokenId id : *ids) {
    const std::string piece = decoder.push(id);
    EXPECT_EQ(find_ill_formed(piece), std::string::npos);
    streamed += piece;
  }
  EXPECT_EQ(streamed, text) << "nothing is left for finish()";
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoderTest, AnyIdsGiveTheTextOfDecode) {
  auto file = small_tokenizer({{"a", "b"}});
  add_token(file, "<S>", {"special"});
  auto tokenizer = load_json(file);
  ASSERT_TRUE(tokenizer.ok());
  Prng random(3);
  for (int round = 0; round < 500; ++round) {
    const bool skip_special = round % 2 == 0;
    std::vector<TokenId> ids;
    for (int i = 0; i < 20; ++i) {
      ids.push_back(
          static_cast<TokenId>(random.below(static_cast<uint64_t>((*tokenizer)->vocab_size()))));
    }
    StreamDecoder decoder(**tokenizer, skip_special);
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.push(id);
    streamed += decoder.finish();
    EXPECT_EQ(streamed, (*tokenizer)->decode(ids, skip_special).value());
  }
}

TEST(StreamDecoderTest, RunOfByteTokensWaitsForItsEnd) {
  auto file = small_tokenizer({});
  auto& vocab = file["model"]["vocab"];
  int next = static_cast<int>(vocab.size());
  for (const char* token : {"<0xC3>", "<0xA9>", "<0xFF>", "▁"}) vocab[token] = next++;
  file["decoder"] = nlohmann::json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  auto tokenizer = load_json(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const TokenId first = 256;  // of the four above
  StreamDecoder decoder(**tokenizer, false);
  const std::pair<TokenId, const char*> pushed[] = {
      {first + 3, ""},   {first + 3, " "}, {first, ""},     {first + 1, ""},
      {first + 3, "é "}, {first, ""},      {first + 2, ""}, {first + 3, "\uFFFD\uFFFD "}};
  for (const auto& [id, text] : pushed) EXPECT_EQ(decoder.push(id), text);
  EXPECT_EQ(decoder.push(first), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ((*tokenizer)->token_bytes(first).value(), "\xC3");
  EXPECT_EQ((*tokenizer)->token_bytes(first + 3).value(), " ");
}

TEST(StreamDecoderTest, CutCharacterAndForeignIdAreShown) {
  auto tokenizer = load_json(small_tokenizer({}));
  ASSERT_TRUE(tokenizer.ok());
  StreamDecoder decoder(**tokenizer, false);
  EXPECT_EQ(decoder.push((*tokenizer)->encode("é").value().front()), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.push((*tokenizer)->vocab_size()), "\uFFFD");
}

}  // namespace
}  // namespace ember
