// Regex: compiling and searching with Oniguruma.
#include "engine/text/regex.h"

#include <oniguruma.h>

#include <limits>
#include <utility>

#include "base/check.h"
#include "engine/text/regex_properties.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

const OnigUChar* bytes_of(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

// Oniguruma wants to be started once; its tables are then shared by all threads.
void start_oniguruma() {
  static const int started = [] {
    OnigEncoding utf8 = ONIG_ENCODING_UTF8;
    return onig_initialize(&utf8, 1);
  }();
  EMBER_CHECK(started == ONIG_NORMAL, "Oniguruma could not be started");
}

std::string message_of(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = info == nullptr ? onig_error_code_to_str(text, code)
                                     : onig_error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(length)};
}

}  // namespace

struct Regex::Compiled {
  explicit Compiled(OnigRegex compiled_regex) : regex(compiled_regex), region(onig_region_new()) {
    EMBER_CHECK(region != nullptr, "out of memory for a regex region");
  }
  explicit Compiled(std::string_view text) : literal(text) {}
  ~Compiled() {
    if (regex == nullptr) return;
    onig_region_free(region, 1);
    onig_free(regex);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  OnigRegex regex = nullptr;
  OnigRegion* region = nullptr;
  std::string literal;  // what is looked for when there is no regex
};

Regex::Regex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  start_oniguruma();
  const std::string quoted = "regular expression \"" + std::string(pattern) + "\": ";
  const Result<std::string> current = with_current_properties(pattern);
  if (!current.ok()) return Error{current.error().code, quoted + current.error().message};
  OnigRegex regex = nullptr;
  OnigErrorInfo info{};
  const OnigUChar* begin = bytes_of(*current);
  const int code = onig_new(&regex, begin, begin + current->size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL) {
    return Error{ErrorCode::kUnsupported, quoted + "Oniguruma: " + message_of(code, &info)};
  }
  return Regex(std::make_unique<Compiled>(regex));
}

Result<Regex> Regex::compile(const PatternText& pattern) {
  if (!pattern.literal || pattern.text.empty()) return compile(pattern.text);
  return Regex(std::make_unique<Compiled>(pattern.text));
}

Status Regex::find_all(std::string_view text, std::vector<Match>& out) {
  if (compiled_->regex == nullptr) {
    out.clear();
    const std::string_view wanted = compiled_->literal;
    for (size_t at = text.find(wanted); at != std::string_view::npos;) {
      out.push_back({at, at + wanted.size()});
      at = text.find(wanted, at + wanted.size());
    }
    return {};
  }
  EMBER_CHECK(text.size() < static_cast<size_t>(std::numeric_limits<int>::max()),
              "text too long for Oniguruma");
  out.clear();
  const OnigUChar* begin = bytes_of(text);
  const OnigUChar* end = begin + text.size();
  size_t from = 0;
  while (from <= text.size()) {
    const int code = onig_search(compiled_->regex, begin, end, begin + from, end, compiled_->region,
                                 ONIG_OPTION_NONE);
    if (code == ONIG_MISMATCH) break;
    if (code < 0) {
      return Error{ErrorCode::kUnsupported,
                   "a regular expression of the tokenizer gave up on a " +
                       std::to_string(text.size()) +
                       " byte piece of text: Oniguruma: " + message_of(code, nullptr)};
    }
    const Match match{static_cast<size_t>(compiled_->region->beg[0]),
                      static_cast<size_t>(compiled_->region->end[0])};
    const bool repeated = match.begin == match.end && !out.empty() && out.back().end == match.end;
    if (repeated) {
      from += from < text.size() ? utf8_step(text.substr(from)).length : 1;
    } else {
      out.push_back(match);
      from = match.end;
    }
  }
  return {};
}

}  // namespace ember
