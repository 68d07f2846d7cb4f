// Hexadecimal, sizes for people, and back.
#include "base/bytes.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ember {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 14> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"K", 1024.0},
                                          {"KiB", 1024.0},
                                          {"KB", 1e3},
                                          {"M", 1048576.0},
                                          {"MiB", 1048576.0},
                                          {"MB", 1e6},
                                          {"G", 1073741824.0},
                                          {"GiB", 1073741824.0},
                                          {"GB", 1e9},
                                          {"T", 1099511627776.0},
                                          {"TiB", 1099511627776.0},
                                          {"TB", 1e12}}};

}  // namespace

std::string to_hex(ConstBytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out.push_back(kDigits[std::to_integer<unsigned>(b) >> 4]);
    out.push_back(kDigits[std::to_integer<unsigned>(b) & 15]);
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = hex_digit(text[i]);
    int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
  }
  return out;
}

std::string human_bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kNames[unit]);
  return text;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  const std::string copy(text);
  if (copy.empty() || (std::isdigit(static_cast<unsigned char>(copy[0])) == 0)) {
    return std::nullopt;
  }
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  std::string_view suffix(end);
  while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  for (const Unit& unit : kUnits) {
    if (suffix != unit.name) continue;
    double bytes = value * unit.bytes;
    if (!std::isfinite(bytes) || bytes < 0 || bytes > 9e18) return std::nullopt;
    return static_cast<uint64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace ember
