// Regex properties: user-defined properties of Oniguruma, which go before those of the same name.
#include "engine/text/regex_properties.h"

#include <oniguruma.h>

#include <cctype>
#include <map>
#include <mutex>
#include <vector>

#include "engine/text/unicode_update.h"

namespace ember {
namespace {

// The name as Oniguruma compares it to its user-defined ones: upper case is another name there.
std::string plain_name(std::string_view name) {
  std::string plain(name);
  std::erase_if(plain, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return plain;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct Range {
  OnigCodePoint first;
  OnigCodePoint last;
};

// The library's ranges of a property without the code points that changed, then those that now have
// it, as Oniguruma wants them: a count, then pairs, ascending and apart.
std::vector<OnigCodePoint> updated_ranges(const OnigCodePoint* library, CategorySet categories) {
  std::vector<Range> ranges;
  const auto changes = category_changes();
  size_t change = 0;
  for (OnigCodePoint i = 0; i < library[0]; ++i) {
    Range range{library[1 + 2 * i], library[2 + 2 * i]};
    while (change < changes.size() && changes[change].last < range.first) ++change;
    for (size_t c = change; c < changes.size() && changes[c].first <= range.last; ++c) {
      if (changes[c].first > range.first) ranges.push_back({range.first, changes[c].first - 1});
      range.first = changes[c].last + 1;
      if (range.first > range.last) break;
    }
    if (range.first <= range.last) ranges.push_back(range);
  }
  std::map<OnigCodePoint, OnigCodePoint> ordered;
  for (const Range& range : ranges) ordered.emplace(range.first, range.last);
  for (const CategoryChange& one : changes) {
    if ((one.now & categories) != 0) ordered.emplace(one.first, one.last);
  }
  std::vector<OnigCodePoint> out{0};
  for (const auto& [first, last] : ordered) {
    if (out.size() > 1 && out.back() + 1 == first) {
      out.back() = last;
    } else {
      out.push_back(first);
      out.push_back(last);
    }
  }
  out[0] = static_cast<OnigCodePoint>(out.size() / 2);
  return out;
}

// Every property of this process, once. Oniguruma keeps pointers into the ranges.
class Definitions {
 public:
  Status define(const std::string& name) {
    const auto categories = categories_of_property(lower_case(name));
    if (!categories) return {};
    const std::lock_guard lock(mutex_);
    if (defined_.contains(name)) return {};
    OnigEncoding utf8 = ONIG_ENCODING_UTF8;
    const auto* begin = reinterpret_cast<const OnigUChar*>(name.data());
    // The seam is not const-correct: the name is only read.
    auto* text = const_cast<OnigUChar*>(begin);
    const int type = utf8->property_name_to_ctype(utf8, text, text + name.size());
    OnigCodePoint single_bytes = 0;
    const OnigCodePoint* library = nullptr;
    if (type < 0 || utf8->get_ctype_code_range(static_cast<OnigCtype>(type), &single_bytes,
                                               &library) != ONIG_NORMAL) {
      return {};  // not a property of this library: compiling the pattern will say so
    }
    auto ranges = updated_ranges(library, *categories);
    if (onig_unicode_define_user_property(name.c_str(), ranges.data()) != ONIG_NORMAL) {
      return Error{ErrorCode::kUnsupported,
                   "the property " + name + ": Oniguruma takes no more than 20 of our definitions"};
    }
    defined_.emplace(name, std::move(ranges));
    return {};
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<OnigCodePoint>> defined_;
};

Definitions& definitions() {
  static Definitions all;
  return all;
}

// The options of a group "(?imx-imx:" that begins at `at`, or nothing.
std::string_view group_options(std::string_view pattern, size_t at) {
  if (pattern.substr(at, 2) != "(?") return {};
  const std::string_view rest = pattern.substr(at + 2);
  const size_t end = rest.find_first_not_of("imxWDSPy-");
  const bool is_options = end != std::string_view::npos && (rest[end] == ':' || rest[end] == ')');
  return is_options ? rest.substr(0, end) : std::string_view();
}

// What stands for \w, \W, \d or \D, or nothing. Outside of brackets Oniguruma answers \w for
// U+0080..U+00FF from another table (in which U+00BD is a word character), so \w stays there and
// only gets the new characters beside it.
std::string_view current_escape(char escape, bool in_brackets) {
  switch (escape) {
    case 'w':
      return in_brackets ? "\\p{Word}" : "(?:\\w|(?!\\w)\\p{Word}(?<=[^\\x{80}-\\x{FF}]))";
    case 'W':
      return in_brackets ? "\\P{Word}" : "(?:\\W(?<=[\\x{80}-\\x{FF}\\P{Word}]))";
    case 'd':
      return "\\p{Nd}";
    case 'D':
      return "\\P{Nd}";
    default:
      return {};
  }
}

// Follows brackets through a pattern: the depth after the character at `at`, which no '\' quotes.
int bracket_depth(std::string_view pattern, size_t at, int depth) {
  const std::string_view before = pattern.substr(0, at);
  const bool opens_set = before.ends_with("[") || before.ends_with("[^");
  if (pattern[at] == '[') return depth + 1;
  if (pattern[at] == ']' && depth > 0 && !opens_set) return depth - 1;
  return depth;
}

}  // namespace

Result<std::string> with_current_properties(std::string_view pattern) {
  std::string out;
  int depth = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (group_options(pattern, at).find_first_of("WDP") != std::string_view::npos) {
      return Error{ErrorCode::kUnsupported, "an ASCII-only option (?W), (?D) or (?P)"};
    }
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      depth = bracket_depth(pattern, at, depth);
      out += pattern[at];
      continue;
    }
    const char escape = pattern[++at];
    if (const auto current = current_escape(escape, depth > 0); !current.empty()) {
      EMBER_TRY(definitions().define(escape == 'w' || escape == 'W' ? "Word" : "Nd"));
      out += current;
      continue;
    }
    out.append({'\\', escape});
    if ((escape != 'p' && escape != 'P') || pattern.substr(at + 1, 1) != "{") continue;
    std::string_view name = pattern.substr(at + 2);
    name = name.substr(0, name.find('}'));
    if (name.starts_with('^')) name.remove_prefix(1);
    EMBER_TRY(definitions().define(plain_name(name)));
  }
  return out;
}

}  // namespace ember
