// Pre-tokenizer: Split in its five behaviours, ByteLevel and Metaspace.
#include "engine/text/pre_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/text/byte_level.h"

namespace ember {
namespace {

// What ByteLevel splits by when it is asked to: GPT-2's expression.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Fragment {
  Pieces::Range range;
  bool hit;  // a match, or what is not one when the split is inverted
};

// Cuts [0, size) at the matches.
std::vector<Fragment> fragments_of(const std::vector<Regex::Match>& matches, size_t size,
                                   bool invert) {
  std::vector<Fragment> fragments;
  size_t at = 0;
  for (const Regex::Match& match : matches) {
    if (at != match.begin) fragments.push_back({{at, match.begin}, invert});
    fragments.push_back({{match.begin, match.end}, !invert});
    at = match.end;
  }
  if (at != size) fragments.push_back({{at, size}, invert});
  return fragments;
}

// Joins each hit that follows no hit to the fragment before it.
void merge_with_previous(std::vector<Fragment>& fragments) {
  std::vector<Fragment> merged;
  bool after_hit = false;
  for (const Fragment& fragment : fragments) {
    if (fragment.hit && !after_hit && !merged.empty()) {
      merged.back().range.end = fragment.range.end;
    } else {
      merged.push_back(fragment);
    }
    after_hit = fragment.hit;
  }
  fragments = std::move(merged);
}

// Joins each hit that no hit follows to the fragment after it.
void merge_with_next(std::vector<Fragment>& fragments) {
  std::vector<Fragment> merged;
  for (size_t i = 0; i < fragments.size(); ++i) {
    const bool joins = i > 0 && fragments[i - 1].hit && !fragments[i].hit;
    if (joins) {
      merged.back().range.end = fragments[i].range.end;
    } else {
      merged.push_back(fragments[i]);
    }
  }
  fragments = std::move(merged);
}

// Joins neighbours of the same kind.
void merge_contiguous(std::vector<Fragment>& fragments) {
  std::vector<Fragment> merged;
  for (const Fragment& fragment : fragments) {
    if (!merged.empty() && merged.back().hit == fragment.hit) {
      merged.back().range.end = fragment.range.end;
    } else {
      merged.push_back(fragment);
    }
  }
  fragments = std::move(merged);
}

void apply(SplitBehavior behavior, std::vector<Fragment>& fragments) {
  switch (behavior) {
    case SplitBehavior::kIsolated:
      break;
    case SplitBehavior::kRemoved:
      std::erase_if(fragments, [](const Fragment& fragment) { return fragment.hit; });
      break;
    case SplitBehavior::kMergedWithPrevious:
      merge_with_previous(fragments);
      break;
    case SplitBehavior::kMergedWithNext:
      merge_with_next(fragments);
      break;
    case SplitBehavior::kContiguous:
      merge_contiguous(fragments);
      break;
  }
}

void add_prefix_spaces(Pieces& pieces) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.ranges.size());
  for (Pieces::Range& range : pieces.ranges) {
    const std::string_view piece = pieces.view(range);
    const size_t begin = text.size();
    const bool adds = piece.front() != ' ';
    if (adds) text += ' ';
    text += piece;
    range = {begin, text.size(), range.from_first + (adds && range.from_first > 0 ? 1 : 0)};
  }
  pieces.text = std::move(text);
}

void to_byte_characters(Pieces& pieces) {
  std::string text;
  text.reserve(pieces.text.size() * 2);
  for (Pieces::Range& range : pieces.ranges) {
    const std::string_view piece = pieces.view(range);
    const size_t begin = text.size();
    append_byte_characters(text, piece.substr(0, range.from_first));
    const size_t from_first = text.size() - begin;
    append_byte_characters(text, piece.substr(range.from_first));
    range = {begin, text.size(), from_first};
  }
  pieces.text = std::move(text);
}

void append_metaspaces(std::string& text, std::string_view piece, std::string_view replacement) {
  for (const char c : piece) {
    if (c == ' ') {
      text += replacement;
    } else {
      text += c;
    }
  }
}

// Spaces become the replacement, and the pieces that the scheme means get one more in front.
void to_metaspaces(const PreTokenizerStep& step, Pieces& pieces) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 2);
  for (Pieces::Range& range : pieces.ranges) {
    const std::string_view piece = pieces.view(range);
    const bool begins_with_one = piece.front() == ' ' || piece.starts_with(step.replacement);
    const bool meant = step.prepend == PrependScheme::kAlways ||
                       (step.prepend == PrependScheme::kFirst && range.from_first > 0);
    const size_t begin = text.size();
    if (meant && !begins_with_one) text += step.replacement;
    append_metaspaces(text, piece.substr(0, range.from_first), step.replacement);
    const size_t from_first = range.from_first > 0 ? text.size() - begin : 0;
    append_metaspaces(text, piece.substr(range.from_first), step.replacement);
    range = {begin, text.size(), from_first};
  }
  pieces.text = std::move(text);
}

// What a step cuts by, or nothing.
std::optional<PatternText> pattern_of(const PreTokenizerStep& step) {
  switch (step.kind) {
    case PreTokenizerStep::Kind::kSplit:
      return step.pattern;
    case PreTokenizerStep::Kind::kByteLevel:
      if (!step.use_regex) return std::nullopt;
      return PatternText{std::string(kByteLevelPattern)};
    case PreTokenizerStep::Kind::kMetaspace:
      if (!step.cuts) return std::nullopt;
      return PatternText{step.replacement, true};
  }
  return std::nullopt;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::build(const std::vector<PreTokenizerStep>& steps) {
  PreTokenizer built;
  for (const PreTokenizerStep& what : steps) {
    Step step{what, {}};
    if (const std::optional<PatternText> pattern = pattern_of(what)) {
      EMBER_ASSIGN(Regex regex, Regex::compile(*pattern));
      step.regex.push_back(std::move(regex));
    }
    if (what.kind == PreTokenizerStep::Kind::kMetaspace) {
      step.what.behavior = SplitBehavior::kMergedWithNext;
    }
    built.steps_.push_back(std::move(step));
  }
  return built;
}

Status PreTokenizer::run(Pieces& pieces) {
  for (Step& step : steps_) {
    const bool byte_level = step.what.kind == PreTokenizerStep::Kind::kByteLevel;
    if (byte_level && step.what.add_prefix_space) add_prefix_spaces(pieces);
    if (step.what.kind == PreTokenizerStep::Kind::kMetaspace) to_metaspaces(step.what, pieces);
    if (!step.regex.empty()) EMBER_TRY(split(step, pieces));
    if (byte_level) to_byte_characters(pieces);
  }
  return {};
}

Status PreTokenizer::split(Step& step, Pieces& pieces) {
  std::vector<Pieces::Range> ranges;
  ranges.reserve(pieces.ranges.size());
  for (const Pieces::Range& whole : pieces.ranges) {
    EMBER_TRY(step.regex.front().find_all(pieces.view(whole), matches_));
    std::vector<Fragment> fragments =
        fragments_of(matches_, whole.end - whole.begin, step.what.invert);
    apply(step.what.behavior, fragments);
    for (const Fragment& fragment : fragments) {
      if (fragment.range.begin == fragment.range.end) continue;
      const size_t skipped = std::min(fragment.range.begin, whole.from_first);
      ranges.push_back(
          {whole.begin + fragment.range.begin, whole.begin + fragment.range.end,
           std::min(whole.from_first - skipped, fragment.range.end - fragment.range.begin)});
    }
  }
  pieces.ranges = std::move(ranges);
  return {};
}

}  // namespace ember
