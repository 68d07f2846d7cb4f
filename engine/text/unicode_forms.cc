// Unicode forms: ICU's normalizers behind a filter that lets only Unicode 9 through.
#include "engine/text/unicode_forms.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>

#include <memory>

#include "base/check.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

constexpr uint8_t kYoungestMajor = 9;

// A character that Unicode 9 knows, by the age that it was given.
bool is_old(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] != 0 && age[0] <= kYoungestMajor;
}

// What ICU's normalizers may touch. A set made of a pattern would need ICU's own file of names.
const icu::UnicodeSet& old_characters() {
  static const icu::UnicodeSet set = [] {
    icu::UnicodeSet built;
    for (UChar32 c = 0; c <= UCHAR_MAX_VALUE; ++c) {
      if (is_old(static_cast<char32_t>(c))) built.add(c);
    }
    built.freeze();
    return built;
  }();
  return set;
}

const icu::Normalizer2* unfiltered(UnicodeForm form, UErrorCode& code) {
  switch (form) {
    case UnicodeForm::kNfc:
      return icu::Normalizer2::getNFCInstance(code);
    case UnicodeForm::kNfd:
      return icu::Normalizer2::getNFDInstance(code);
    case UnicodeForm::kNfkc:
      return icu::Normalizer2::getNFKCInstance(code);
    case UnicodeForm::kNfkd:
      return icu::Normalizer2::getNFKDInstance(code);
  }
  return nullptr;
}

icu::FilteredNormalizer2 make_normalizer(UnicodeForm form) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* whole = unfiltered(form, code);
  EMBER_CHECK(U_SUCCESS(code) && whole != nullptr, "ICU has lost its normalization tables");
  return {*whole, old_characters()};
}

const icu::Normalizer2& normalizer(UnicodeForm form) {
  static const icu::FilteredNormalizer2 all[] = {
      make_normalizer(UnicodeForm::kNfc), make_normalizer(UnicodeForm::kNfd),
      make_normalizer(UnicodeForm::kNfkc), make_normalizer(UnicodeForm::kNfkd)};
  return all[static_cast<size_t>(form)];
}

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

// Capitals that Unicode got after version 15, and how far their small letters are.
struct Capitals {
  char32_t first;
  char32_t last;
  char32_t step;  // between capitals
  int32_t to_small;
};
constexpr Capitals kYoungCapitals[] = {
    {0x1C89, 0x1C89, 1, 1},      {0xA7CB, 0xA7CB, 1, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CE, 2, 1},      {0xA7D2, 0xA7D4, 2, 1},
    {0xA7DA, 0xA7DA, 1, 1},      {0xA7DC, 0xA7DC, 1, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 1, 0x20}, {0x16EA0, 0x16EB8, 1, 0x1B},
};

char32_t small_letter(char32_t c) {
  for (const Capitals& some : kYoungCapitals) {
    if (c >= some.first && c <= some.last && (c - some.first) % some.step == 0) {
      return static_cast<char32_t>(static_cast<int32_t>(c) + some.to_small);
    }
  }
  return static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
}

bool is_mark(char32_t c) {
  constexpr uint32_t kMarks = U_GC_MN_MASK | U_GC_MC_MASK | U_GC_ME_MASK;
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & kMarks) != 0 && is_old(c);
}

}  // namespace

std::string in_form(UnicodeForm form, std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  icu::StringByteSink<std::string> sink(&out);
  UErrorCode code = U_ZERO_ERROR;
  normalizer(form).normalizeUTF8(
      0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr, code);
  EMBER_CHECK(U_SUCCESS(code), "ICU could not normalize a well-formed text");
  return out;
}

std::string in_lower_case(std::string_view text) {
  constexpr char32_t kDottedI = 0x130;  // the only one with two characters, i and a dot above
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char byte = text[at];
    if (static_cast<unsigned char>(byte) < 0x80) {
      out += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
      ++at;
      continue;
    }
    const char32_t c = first_code_point(text.substr(at));
    at += utf8_step(text.substr(at)).length;
    if (c == kDottedI) {
      out += "i\u0307";
    } else {
      append_utf8(out, small_letter(c));
    }
  }
  return out;
}

std::string without_marks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_step(text.substr(at)).length;
    const std::string_view character = text.substr(at, length);
    if (length == 1 || !is_mark(first_code_point(character))) out += character;
    at += length;
  }
  return out;
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace ember
