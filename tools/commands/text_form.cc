// Figures, times and texts for a person's eyes.
#include "tools/commands/text_form.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "base/format.h"

namespace ember {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

// Bytes of the well-formed character at the front; 0: there is none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t bytes = lead >= 0xf0 && lead <= 0xf4  ? 4
                       : lead >= 0xe0 && lead < 0xf0 ? 3
                       : lead >= 0xc2 && lead < 0xe0 ? 2
                                                     : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool no_character = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return overlong || no_character ? 0 : bytes;
}

// C1 controls (U+0080 to U+009F) move a terminal's cursor as ESC does; the marks of writing
// direction (U+202A to U+202E, U+2066 to U+2069) make it show a text in another order.
bool is_control(std::string_view character) {
  const auto byte = [&character](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
         (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
}

// Of the well-formed characters below these, none is wider or narrower than a column.
constexpr char32_t kFirstMark = 0x0300;

char32_t code_point(std::string_view character) {
  const auto byte = [&character](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t code = byte(0) & (0xffu >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

size_t character_columns(std::string_view character) {
  const char32_t code = code_point(character);
  if (code < kFirstMark) return 1;
  const auto ucode = static_cast<UChar32>(code);
  const int8_t kind = ::u_charType(ucode);
  if (kind == U_NON_SPACING_MARK || kind == U_ENCLOSING_MARK || kind == U_FORMAT_CHAR) return 0;
  const int32_t width = ::u_getIntPropertyValue(ucode, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_FULLWIDTH || width == U_EA_WIDE ? 2 : 1;
}

// The first character of a text, as it is shown in a line, is taken from it.
std::string_view take_shown(std::string_view& text) {
  const size_t bytes = character_bytes(text);
  const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
  text.remove_prefix(character.size());
  if (character == "\n" || character == "\r" || character == "\t") return " ";
  return bytes == 0 || is_control(character) ? kReplacement : character;
}

}  // namespace

std::string age_text(int64_t then_unix_us, int64_t now_unix_us) {
  if (then_unix_us <= 0) return "-";
  const int64_t seconds = std::max<int64_t>(0, now_unix_us - then_unix_us) / 1'000'000;
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86'400) + " d";
}

std::string time_text(int64_t unix_us) {
  if (unix_us <= 0) return "-";
  const std::time_t seconds = unix_us / 1'000'000;
  std::tm parts = {};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "-";
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::string duration_text(double ms) {
  std::string text;
  if (ms < 10) {
    print_to(text, "%.1f ms", ms);
  } else if (ms < 1000) {
    print_to(text, "%.0f ms", ms);
  } else if (ms < 100'000) {
    print_to(text, "%.1f s", ms * 1e-3);
  } else {
    print_to(text, "%.0f min", ms / 60'000);
  }
  return text;
}

std::string grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(uint64_t number, const std::string& noun) {
  return grouped(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string percent_text(double part, double whole) {
  if (whole <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part / whole);
  return text;
}

std::string one_line(std::string_view text, size_t columns) {
  std::string line;
  size_t used = 0;
  size_t room = 0;  // bytes of the line that leave a column for the ellipsis
  while (!text.empty()) {
    const std::string_view shown = take_shown(text);
    used += character_columns(shown);
    if (used > columns) {
      line.resize(room);
      return columns == 0 ? line : line.append(kEllipsis);
    }
    line += shown;
    if (used < columns) room = line.size();
  }
  return line;
}

std::string end_of_line(std::string_view text, size_t columns) {
  const std::string line = one_line(text, SIZE_MAX);
  size_t left = columns_of(line);
  if (left <= columns) return line;
  std::string_view rest = line;
  const auto front = [&rest] { return rest.substr(0, character_bytes(rest)); };
  // A mark goes with the character that it stands upon.
  while (!rest.empty() && (left >= columns || character_columns(front()) == 0)) {
    left -= character_columns(front());
    rest.remove_prefix(front().size());
  }
  return columns == 0 ? std::string() : std::string(kEllipsis).append(rest);
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    valid += bytes > 0 ? text.substr(0, bytes) : kReplacement;
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return valid;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    text.remove_prefix(character.size());
    const bool kept = character == "\n" || character == "\t";
    shown += bytes == 0 || (!kept && is_control(character)) ? kReplacement : character;
  }
  return shown;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) columns += character_columns(take_shown(text));
  return columns;
}

void TextTable::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = one_line(cell, SIZE_MAX);
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(size_t width, bool bold) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(columns_of(columns_[i].name));
    for (const std::vector<std::string>& row : rows_) {
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  std::string text;
  const auto print = [&](const auto& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = cell_of(i);
      const std::string gap(widths[i] - columns_of(cell), ' ');
      if (i > 0) line += "  ";
      line += columns_[i].right ? gap + cell : i + 1 < columns_.size() ? cell + gap : cell;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += one_line(line, width);
  };
  if (bold) text += "\033[1m";
  print([this](size_t i) { return columns_[i].name; });
  text += bold ? "\033[0m\n" : "\n";
  for (const std::vector<std::string>& row : rows_) {
    print([&row](size_t i) { return row[i]; });
    text += '\n';
  }
  return text;
}

}  // namespace ember
