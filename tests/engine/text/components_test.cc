// Every component that a tokenizer.json may name, against what the `tokenizers` package said.
#include "tests/engine/text/package_answers.h"

namespace ember {
namespace {

TEST(ComponentsTest, AnswersAreThoseOfThePackage) {
  auto other = load_json(small_tokenizer({}));
  ASSERT_TRUE(other.ok());
  const std::string answers = EMBER_SOURCE_DIR "/tests/data/tokenizers/components.json.gz";
  EXPECT_GT(expect_package_answers(answers, **other), 1000U);
}

}  // namespace
}  // namespace ember
