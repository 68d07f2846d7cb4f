// Figures, times and texts for a person's eyes.
#include "tools/commands/text_form.h"

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
  size_t shorter = 0;  // bytes of the line without its last character
  for (size_t used = 0; !text.empty(); ++used) {
    if (used == columns) {
      line.resize(shorter);
      return columns == 0 ? line : line.append(kEllipsis);
    }
    const size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    text.remove_prefix(character.size());
    const bool blank = character == "\n" || character == "\r" || character == "\t";
    shorter = line.size();
    line += blank ? " " : bytes == 0 || is_control(character) ? kReplacement : character;
  }
  return line;
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
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
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
    text += columns_of(line) > width ? one_line(line, width) : line;
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
