// Tests of the tokenize command: line for line both ways, and where it stops.
#include "tools/commands/model/tokenize.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ember {
namespace {

class TokenizeTest : public ::testing::Test {
 protected:
  // The output; the status is in status_.
  std::string run(const std::string& input) {
    std::istringstream in(input);
    std::ostringstream out;
    status_ = run_tokenize(options_, in, out);
    return out.str();
  }
  TokenizeOptions options_{std::string(EMBER_SOURCE_DIR) +
                           "/tests/data/tokenizer/tokenizer.json.gz"};
  Status status_;
};

TEST_F(TokenizeTest, EncodesLineForLine) {
  EXPECT_EQ(run("{\"text\": \"Hello\"}\n{\"text\": \"\"}\n{\"text\":\"x<｜end▁of▁sentence｜>y\"}"),
            "{\"ids\":[19923]}\n{\"ids\":[]}\n{\"ids\":[90,1,91]}\n");
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(run(""), "");
  EXPECT_TRUE(status_.ok());
  options_.bos = true;
  EXPECT_EQ(run("{\"text\": \"Hello\"}\n\n"), "{\"ids\":[0,19923]}\n");
  EXPECT_TRUE(status_.ok()) << "a last empty line is no line";
}

TEST_F(TokenizeTest, DecodesLineForLine) {
  options_.decode = true;
  EXPECT_EQ(run("{\"ids\": [0, 19923]}\n{\"ids\": []}\n"),
            "{\"text\":\"<｜begin▁of▁sentence｜>Hello\"}\n{\"text\":\"\"}\n");
  options_.skip_special = true;
  EXPECT_EQ(run("{\"ids\": [0, 19923]}\n"), "{\"text\":\"Hello\"}\n");
}

TEST_F(TokenizeTest, MalformedLineIsNumberedAfterTheGoodOnes) {
  for (const char* bad : {"", " ", "x", "[1]", "{\"ids\": [1]}", "{\"text\": 5}",
                          "{\"text\": \"\\ud800\"}", "{\"text\": \"\xFF\"}"}) {
    EXPECT_EQ(run("{\"text\": \"Hello\"}\n" + std::string(bad) + "\n{\"text\": \"Hello\"}\n"),
              "{\"ids\":[19923]}\n");
    ASSERT_FALSE(status_.ok()) << bad;
    EXPECT_EQ(status_.error().message.find("line 2: "), 0U) << status_.error().message;
    EXPECT_NE(status_.error().message.find("expected {\"text\": "), std::string::npos);
  }
}

TEST_F(TokenizeTest, IdsThatAreNoneAreErrors) {
  options_.decode = true;
  for (const char* bad : {"{\"ids\": [128815]}", "{\"ids\": [-1]}", "{\"ids\": [99999999999]}",
                          "{\"ids\": [1.5]}", "{\"ids\": [\"1\"]}", "{\"ids\": 1}"}) {
    EXPECT_EQ(run(std::string(bad) + "\n"), "");
    ASSERT_FALSE(status_.ok()) << bad;
    EXPECT_EQ(status_.error().message.find("line 1: "), 0U) << status_.error().message;
  }
}

}  // namespace
}  // namespace ember
