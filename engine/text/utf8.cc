// UTF-8: the well-formed byte sequences, as in table 3-7 of the Unicode standard.
#include "engine/text/utf8.h"

#include <cstdint>

#include "base/check.h"

namespace ember {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Lead {
  size_t length;               // bytes of the whole character; 0: not a lead byte
  uint8_t second_low = 0x80;   // the second byte's range, which rules out overlong forms,
  uint8_t second_high = 0xBF;  // surrogates and what lies beyond U+10FFFF
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Step utf8_step(std::string_view bytes) {
  EMBER_CHECK(!bytes.empty(), "utf8_step of nothing");
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const Lead lead = lead_of(at(0));
  if (lead.length == 0) return {Utf8Step::Kind::kIllFormed, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Utf8Step::Kind::kCutOff, i};
    const uint8_t low = i == 1 ? lead.second_low : uint8_t{0x80};
    const uint8_t high = i == 1 ? lead.second_high : uint8_t{0xBF};
    if (at(i) < low || at(i) > high) return {Utf8Step::Kind::kIllFormed, i};
  }
  return {Utf8Step::Kind::kCharacter, lead.length};
}

size_t find_ill_formed(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Step step = utf8_step(bytes.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.length;
  }
  return std::string_view::npos;
}

void take_complete_utf8(std::string& pending, std::string& out) {
  const std::string_view bytes = pending;
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Step step = utf8_step(bytes.substr(at));
    if (step.kind == Utf8Step::Kind::kCutOff) break;
    const bool good = step.kind == Utf8Step::Kind::kCharacter;
    out += good ? bytes.substr(at, step.length) : kReplacement;
    at += step.length;
  }
  pending.erase(0, at);
}

std::string lossy_utf8(std::string_view bytes) {
  std::string pending(bytes);
  std::string text;
  text.reserve(bytes.size());
  take_complete_utf8(pending, text);
  if (!pending.empty()) text += kReplacement;
  return text;
}

char32_t first_code_point(std::string_view text) {
  if (text.empty()) return 0;
  const size_t length = utf8_step(text).length;
  const auto at = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[i])); };
  if (length == 1) return at(0);
  char32_t code_point = at(0) & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) code_point = (code_point << 6) | (at(i) & 0x3FU);
  return code_point;
}

size_t last_character(std::string_view text) {
  EMBER_CHECK(!text.empty(), "last_character of nothing");
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

void append_short_utf8(std::string& out, char32_t code_point) {
  EMBER_CHECK(code_point < 0x800, "append_short_utf8 of a long character");
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else {
    out += static_cast<char>(0xC0 | (code_point >> 6));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  }
}

void append_utf8(std::string& out, char32_t code_point) {
  if (code_point < 0x800) return append_short_utf8(out, code_point);
  const auto follow = [&out](char32_t six_bits) {
    out += static_cast<char>(0x80 | (six_bits & 0x3F));
  };
  if (code_point < 0x10000) {
    out += static_cast<char>(0xE0 | (code_point >> 12));
  } else {
    out += static_cast<char>(0xF0 | (code_point >> 18));
    follow(code_point >> 12);
  }
  follow(code_point >> 6);
  follow(code_point);
}

}  // namespace ember
