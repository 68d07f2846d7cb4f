// Figures, times, texts and tables for a person's eyes.
#include "tools/commands/text_form.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "base/prng.h"
#include "tools/commands/look/value_summary.h"

namespace ember {
namespace {

TEST(TextFormTest, FiguresAndTimes) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(age_text(0, 5), "-");
  EXPECT_EQ(age_text(1, 119'000'001), "119 s");
  EXPECT_EQ(age_text(1, 120'000'001), "2 min");
  EXPECT_EQ(age_text(1, int64_t{7200} * 1'000'000 + 1), "2 h");
  EXPECT_EQ(age_text(1, int64_t{172'800} * 1'000'000 + 1), "2 d");
  EXPECT_EQ(age_text(9'000'000, 1), "0 s") << "a clock that was set back";
  EXPECT_EQ(time_text(int64_t{86'400} * 1'000'000), "1970-01-02 00:00:00 UTC");
  EXPECT_EQ(percent_text(1, 0), "-");
  EXPECT_EQ(percent_text(1, 8), "12.5 %");
}

TEST(TextFormTest, ALineHasNoControlCharacters) {
  EXPECT_EQ(one_line("a\nb\tc", 10), "a b c");
  EXPECT_EQ(one_line("\x1b[2J", 10), "\xef\xbf\xbd[2J");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "2J",
                     10),
            "\xef\xbf\xbd"
            "2J")
      << "a C1 control";
  EXPECT_EQ(one_line("\xff", 10), "\xef\xbf\xbd");
  EXPECT_EQ(one_line("abcdef", 4), "abc\xe2\x80\xa6");
  EXPECT_EQ(one_line("abcd", 4), "abcd");
  EXPECT_EQ(one_line("\xc3\xa9\xc3\xa9\xc3\xa9", 2), "\xc3\xa9\xe2\x80\xa6");
  EXPECT_EQ(one_line("abc", 0), "");
}

TEST(TextFormTest, WideCharactersTakeTwoColumnsAndMarksNone) {
  const std::string bar = "\xef\xbd\x9c";  // the fullwidth bar of DeepSeek's special tokens
  const std::string acute = "\xcc\x81";
  EXPECT_EQ(columns_of(bar), 2u);
  EXPECT_EQ(columns_of("\xe4\xb8\xad\xe6\x96\x87"), 4u);
  EXPECT_EQ(columns_of("e" + acute), 1u);
  EXPECT_EQ(columns_of("\xe2\x94\x94\xe2\x80\xa6"), 2u) << "lines of a tree, an ellipsis";
  EXPECT_EQ(one_line(bar + bar, 4), bar + bar);
  EXPECT_EQ(one_line(bar + bar, 3), bar + "\xe2\x80\xa6");
  EXPECT_EQ(one_line(bar + bar, 2), "\xe2\x80\xa6");
  EXPECT_EQ(one_line("ae" + acute + "b", 3), "ae" + acute + "b");
  TextTable table({{"n"}, {"t"}});
  table.add({bar, "x"});
  table.add({"abc", bar + bar});
  EXPECT_EQ(table.text(8, false),
            "n    t\n" + bar + "   x\nabc  " + bar + "\xe2\x80\xa6\n");
}

TEST(TextFormTest, TheEndOfATextIsAsWideAsItMayBe) {
  const std::string bar = "\xef\xbd\x9c";
  const std::string acute = "\xcc\x81";
  const std::string dots = "\xe2\x80\xa6";
  EXPECT_EQ(end_of_line("abcd", 4), "abcd");
  EXPECT_EQ(end_of_line("abcde", 4), dots + "cde");
  EXPECT_EQ(end_of_line("ab\ncd", 3), dots + "cd");
  EXPECT_EQ(end_of_line("a" + bar + bar, 4), dots + bar);
  EXPECT_EQ(end_of_line("abe" + acute + "c", 3), dots + "e" + acute + "c");
  EXPECT_EQ(end_of_line("abe" + acute + "c", 2), dots + "c");
  EXPECT_EQ(end_of_line("abc", 0), "");
}

TEST(TextFormTest, AnyBytesBecomeValidText) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Prng prng(seed);
    std::string bytes(prng.below(12), '\0');
    for (char& byte : bytes) byte = static_cast<char>(prng.below(256));
    const std::string line = one_line(bytes, 6);
    EXPECT_LE(columns_of(line), 6u);
    EXPECT_LE(columns_of(end_of_line(bytes, 6)), 6u);
    EXPECT_EQ(valid_utf8(line), line);
    for (const char byte : line) EXPECT_FALSE(static_cast<unsigned char>(byte) < 0x20);
    EXPECT_EQ(valid_utf8(valid_utf8(bytes)), valid_utf8(bytes));
  }
  EXPECT_EQ(valid_utf8("a\n\xe2\x82\xac"), "a\n\xe2\x82\xac");
}

TEST(TextFormTest, ATableIsAlignedAndCut) {
  TextTable table({{"name"}, {"bytes", true}, {"text"}});
  table.add({"a", "1", "short"});
  table.add({"longer", "12345", "a text that is too long"});
  EXPECT_EQ(table.text(100, false),
            "name    bytes  text\n"
            "a           1  short\n"
            "longer  12345  a text that is too long\n");
  EXPECT_EQ(table.text(21, false),
            "name    bytes  text\n"
            "a           1  short\n"
            "longer  12345  a tex\xe2\x80\xa6\n");
}

TEST(ValueSummaryTest, CountsWhatIsThere) {
  const float values[] = {0.f, 1.f, -2.f, 0.25f, INFINITY, NAN};
  ValueSummary summary;
  summary.add(std::as_bytes(std::span<const float>(values)), DType::kF32);
  EXPECT_EQ(summary.count(), 6u);
  EXPECT_EQ(summary.nan(), 1u);
  EXPECT_EQ(summary.infinite(), 1u);
  EXPECT_EQ(summary.zeros(), 1u);
  EXPECT_EQ(summary.least(), -2);
  EXPECT_EQ(summary.most(), 1);
  EXPECT_DOUBLE_EQ(summary.mean(), -0.75 / 4);
  EXPECT_EQ(summary.bins()[0], 1u);
  EXPECT_EQ(summary.bins()[static_cast<size_t>(1 - ValueSummary::kFirstPower)], 1u);
  EXPECT_EQ(summary.bins()[static_cast<size_t>(-2 - ValueSummary::kFirstPower)], 1u);
}

TEST(ValueSummaryTest, EntropyIsThatOfThePlanes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) append_value(bytes, static_cast<uint16_t>(0x3f80 + i % 4));
  ValueSummary summary;
  summary.add(as_bytes(bytes), DType::kBf16);
  EXPECT_EQ(summary.exponent_entropy(), 0);
  EXPECT_DOUBLE_EQ(summary.mantissa_entropy(), 2);
}

}  // namespace
}  // namespace ember
