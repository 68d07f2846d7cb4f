// Compares random text with the `tokenizers` package, where python3 (or EMBER_PYTHON) has it.
#include <cstdlib>

#include "tests/engine/text/package_answers.h"

namespace ember {
namespace {

const std::string kSource = EMBER_SOURCE_DIR;
const std::string kV3 = kSource + "/tests/data/tokenizer/tokenizer.json.gz";

// A whole number from the environment: CI runs a small part, a person as much as they like.
int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST(TokenizersPackageTest, RandomTextHasTheSameIdsAndText) {
  const char* chosen = std::getenv("EMBER_PYTHON");
  const std::string python = chosen == nullptr ? "python3" : chosen;
  if (std::system((python + " -c 'import tokenizers' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << python
                 << " has no tokenizers package (pip install tokenizers in a venv, then "
                    "EMBER_PYTHON=venv/bin/python): nothing was compared";
  }
  auto v3 = Tokenizer::load(kV3);
  ASSERT_TRUE(v3.ok());
  const TempFolder folder;
  const std::string answers = folder / "answers.json.gz";
  const std::string command =
      python + " '" + kSource + "/tests/engine/text/tokenizers_package.py' '" + answers +
      "' --deepseek '" + kV3 + "' --texts " + std::to_string(number_of("EMBER_TEXTS", 100)) +
      " --random " + std::to_string(number_of("EMBER_MIXTURES", 60)) + " --seed " +
      std::to_string(number_of("EMBER_SEED", 11));
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const size_t texts = expect_package_answers(answers, **v3);
  std::printf("%zu texts compared\n", texts);
}

}  // namespace
}  // namespace ember
