// Normalizer: one step after the other over the whole text.
#include "engine/text/normalizer.h"

#include <algorithm>
#include <utility>

#include "engine/text/byte_level.h"
#include "engine/text/unicode_forms.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

using Rewrite = std::string (*)(std::string_view);

std::string as_byte_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 2);
  append_byte_characters(out, text);
  return out;
}

// What rewrites each character by itself, or characters with the marks that follow them; null for a
// step that is none of these.
Rewrite rewrite_of(NormalizerStep::Kind kind) {
  switch (kind) {
    case NormalizerStep::Kind::kNfc:
      return [](std::string_view text) { return in_form(UnicodeForm::kNfc, text); };
    case NormalizerStep::Kind::kNfd:
      return [](std::string_view text) { return in_form(UnicodeForm::kNfd, text); };
    case NormalizerStep::Kind::kNfkc:
      return [](std::string_view text) { return in_form(UnicodeForm::kNfkc, text); };
    case NormalizerStep::Kind::kNfkd:
      return [](std::string_view text) { return in_form(UnicodeForm::kNfkd, text); };
    case NormalizerStep::Kind::kLowercase:
      return in_lower_case;
    case NormalizerStep::Kind::kStripAccents:
      return without_marks;
    case NormalizerStep::Kind::kByteLevel:
      return as_byte_characters;
    default:
      return nullptr;
  }
}

void strip(const NormalizerStep& step, NormalizedText& text) {
  const std::string_view all = text.text;
  size_t begin = 0;
  size_t end = all.size();
  while (step.left && begin < end && is_white_space(first_code_point(all.substr(begin)))) {
    begin += utf8_step(all.substr(begin)).length;
  }
  while (step.right && begin < end) {
    const size_t last = last_character(all.substr(0, end));
    if (!is_white_space(first_code_point(all.substr(last)))) break;
    end = last;
  }
  text.from_first = std::min(end, text.from_first);
  text.from_first -= std::min(begin, text.from_first);
  text.text = text.text.substr(begin, end - begin);
}

void prepend(const std::string& content, NormalizedText& text) {
  if (text.text.empty()) return;
  text.text.insert(0, content);
  if (text.from_first > 0) text.from_first += content.size();
}

}  // namespace

Result<Normalizer> Normalizer::build(const std::vector<NormalizerStep>& steps) {
  Normalizer built;
  for (const NormalizerStep& what : steps) {
    Step step{what, {}};
    if (what.kind == NormalizerStep::Kind::kReplace) {
      EMBER_ASSIGN(Regex regex, Regex::compile(what.pattern));
      step.regex.push_back(std::move(regex));
    }
    built.steps_.push_back(std::move(step));
  }
  return built;
}

Status Normalizer::run(NormalizedText& text) {
  for (Step& step : steps_) {
    if (const Rewrite rewrite = rewrite_of(step.what.kind); rewrite != nullptr) {
      const std::string_view front = std::string_view(text.text).substr(0, text.from_first);
      text.from_first = rewrite(front).size();
      text.text = rewrite(text.text);
      text.from_first = std::min(text.from_first, text.text.size());
    } else if (step.what.kind == NormalizerStep::Kind::kStrip) {
      strip(step.what, text);
    } else if (step.what.kind == NormalizerStep::Kind::kPrepend) {
      prepend(step.what.content, text);
    } else {
      EMBER_TRY(replace(step, text));
    }
  }
  return {};
}

Status Normalizer::replace(Step& step, NormalizedText& text) {
  EMBER_TRY(step.regex.front().find_all(text.text, matches_));
  if (matches_.empty()) return {};
  std::string out;
  out.reserve(text.text.size());
  size_t from_first = 0;
  size_t done = 0;
  // Adds what came of the bytes that end at `source_end`.
  const auto add = [&](std::string_view piece, size_t source_end) {
    out += piece;
    if (source_end <= text.from_first) from_first = out.size();
  };
  for (const Regex::Match& match : matches_) {
    add(std::string_view(text.text).substr(done, match.begin - done), match.begin);
    add(step.what.content, match.end);
    done = match.end;
  }
  add(std::string_view(text.text).substr(done), text.text.size());
  const bool first_untouched = matches_.front().begin >= text.from_first;
  text.from_first = first_untouched ? text.from_first : from_first;
  text.text = std::move(out);
  return {};
}

}  // namespace ember
