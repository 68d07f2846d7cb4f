// Pre-tokenizer: Split in its five behaviours, and ByteLevel.
#include "engine/text/pre_tokenizer.h"

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
    if (piece.front() != ' ') text += ' ';
    text += piece;
    range = {begin, text.size()};
  }
  pieces.text = std::move(text);
}

void to_byte_characters(Pieces& pieces) {
  std::string text;
  text.reserve(pieces.text.size() * 2);
  for (Pieces::Range& range : pieces.ranges) {
    const size_t begin = text.size();
    append_byte_characters(text, pieces.view(range));
    range = {begin, text.size()};
  }
  pieces.text = std::move(text);
}

}  // namespace

Result<PreTokenizer> PreTokenizer::build(const std::vector<PreTokenizerStep>& steps) {
  PreTokenizer built;
  for (const PreTokenizerStep& what : steps) {
    Step step{what, {}};
    const bool byte_level = what.kind == PreTokenizerStep::Kind::kByteLevel;
    if (!byte_level || what.use_regex) {
      EMBER_ASSIGN(Regex regex, Regex::compile(byte_level ? kByteLevelPattern : what.pattern));
      step.regex.push_back(std::move(regex));
    }
    built.steps_.push_back(std::move(step));
  }
  return built;
}

Status PreTokenizer::run(Pieces& pieces) {
  for (Step& step : steps_) {
    const bool byte_level = step.what.kind == PreTokenizerStep::Kind::kByteLevel;
    if (byte_level && step.what.add_prefix_space) add_prefix_spaces(pieces);
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
      ranges.push_back({whole.begin + fragment.range.begin, whole.begin + fragment.range.end});
    }
  }
  pieces.ranges = std::move(ranges);
  return {};
}

}  // namespace ember
