// Compares random text with the `tokenizers` package, where python3 has it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/prng.h"
#include "engine/text/utf8.h"
#include "tests/engine/text/small_tokenizer.h"

namespace ember {
namespace {

constexpr const char* kScript = R"(
import gzip, json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_str(gzip.open(sys.argv[1], "rt", encoding="utf-8").read())
with open(sys.argv[3], "w") as out:
    for line in open(sys.argv[2], encoding="utf-8"):
        out.write(json.dumps(tokenizer.encode(json.loads(line), add_special_tokens=False).ids))
        out.write("\n")
)";

std::string random_text(Prng& random) {
  static const std::vector<std::string> kPieces = {
      "hello",   " world",     "don't",   "\n",      "\r\n",   "   ",       "\t",
      "1234",    "½",          "你好",    "カタ",    "안녕",   "😀",         "\u200D",
      "e\u0301", "!?",         " the",    "__x__",   "<",      "｜>",       "\u00A0",
      "ß",       "<｜User｜>", "<｜User", "<|EOT|>", "\u3000", "\U0001FA89"};
  std::string text;
  const uint64_t pieces = random.below(40);
  for (uint64_t i = 0; i < pieces; ++i) {
    if (random.below(3) != 0) {
      text += kPieces[random.below(kPieces.size())];
    } else {
      append_short_utf8(text, static_cast<char32_t>(0x20 + random.below(0x7E0)));
    }
  }
  return text;
}

TEST(TokenizersPackageTest, RandomTextHasTheSameIds) {
  if (std::system("python3 -c 'import tokenizers' 2>/dev/null") != 0) {
    GTEST_SKIP() << "python3 has no tokenizers package";
  }
  const std::string file =
      std::string(EMBER_SOURCE_DIR) + "/tests/data/tokenizer/tokenizer.json.gz";
  auto tokenizer = Tokenizer::load(file);
  ASSERT_TRUE(tokenizer.ok());
  const TempFolder folder;
  const std::string script = folder.write("compare.py", kScript);
  Prng random(11);
  std::vector<std::string> texts;
  std::string lines;
  for (int i = 0; i < 5000; ++i) {
    texts.push_back(random_text(random));
    lines += nlohmann::json(texts.back()).dump() + "\n";
  }
  const std::string input = folder.write("input.jsonl", lines);
  const std::string output = folder.path() + "/output.jsonl";
  const std::string command =
      "python3 '" + script + "' '" + file + "' '" + input + "' '" + output + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream expected(output);
  for (const std::string& text : texts) {
    std::string line;
    ASSERT_TRUE(std::getline(expected, line));
    EXPECT_EQ((*tokenizer)->encode(text).value(),
              nlohmann::json::parse(line).get<std::vector<TokenId>>())
        << text;
  }
}

}  // namespace
}  // namespace ember
