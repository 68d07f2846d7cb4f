// Text form: how figures, times and texts look to a person, the same in every command.
//
// Journey    none; the commands' tables
// Invariant  a text that goes to a terminal has no control characters in it, whatever a prompt held
// Threads    any; pure
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ember {

// "3 s", "12 min", "5 h", "8 d" before `now`; "-" when the time is not known.
std::string age_text(int64_t then_unix_us, int64_t now_unix_us);
// "2026-11-30 20:15:04 UTC"; "-" when it is not known.
std::string time_text(int64_t unix_us);
// "0.4 ms", "312 ms", "4.1 s", "12 min".
std::string duration_text(double ms);
// 1234567 as "1,234,567".
std::string grouped(uint64_t number);
// "1 block", "1,234 blocks".
std::string counted(uint64_t number, const std::string& noun);
// "12.3 %"; "-" of nothing.
std::string percent_text(double part, double whole);

// One line of at most `columns` columns: line ends and tabs are shown as spaces, other control
// characters and bytes that are no UTF-8 as U+FFFD, what is cut off as an ellipsis.
std::string one_line(std::string_view text, size_t columns);
// The same of the end of a text: the ellipsis stands for what was before.
std::string end_of_line(std::string_view text, size_t columns);
// The same without a limit, for JSON and files: nothing is cut.
std::string valid_utf8(std::string_view text);
// As valid_utf8, and no control characters but line ends and tabs: for a text of many lines.
std::string printable(std::string_view text);
// Columns that a valid text takes in a terminal: none for a mark upon another character, two for
// the wide characters of East Asian writing, one for each other.
size_t columns_of(std::string_view text);

// A table: columns as wide as their widest cell; numbers stand at the right.
class TextTable {
 public:
  struct Column {
    std::string name;
    bool right = false;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }
  // Lines of at most `width` columns, the last cell is cut; `bold` sets the names apart.
  std::string text(size_t width, bool bold) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ember
