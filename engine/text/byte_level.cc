// Byte level: the table in both directions.
#include "engine/text/byte_level.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "engine/text/utf8.h"

namespace ember {
namespace {

constexpr size_t kFirstForeign = 0x100;
constexpr size_t kCharacters = 0x144;  // code points below this may stand for a byte

struct Table {
  std::array<char16_t, 256> character{};
  std::array<int16_t, kCharacters> byte{};
};

constexpr Table make_table() {
  Table table;
  table.byte.fill(-1);
  size_t foreign = kFirstForeign;
  for (size_t b = 0; b < 256; ++b) {
    const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    const size_t c = itself ? b : foreign++;
    table.character[b] = static_cast<char16_t>(c);
    table.byte[c] = static_cast<int16_t>(b);
  }
  return table;
}

constexpr Table kTable = make_table();
static_assert(kTable.character[255] == 255 && kTable.character[' '] == 0x120);
static_assert(kTable.byte[kCharacters - 1] == 173, "byte 173 has the last foreign character");

}  // namespace

void append_byte_characters(std::string& out, std::string_view bytes) {
  for (const char c : bytes) append_short_utf8(out, kTable.character[static_cast<uint8_t>(c)]);
}

std::string bytes_of_token(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size(); at += utf8_step(token.substr(at)).length) {
    const char32_t c = first_code_point(token.substr(at));
    if (c >= kCharacters || kTable.byte[c] < 0) return std::string(token);
    bytes += static_cast<char>(kTable.byte[c]);
  }
  return bytes;
}

std::string byte_token(uint8_t byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

std::optional<uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  std::string_view digits = token.substr(3, 2);
  if (digits.front() == '+') digits.remove_prefix(1);
  uint8_t byte = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, byte, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return byte;
}

}  // namespace ember
