// Template text: a lexer that splits a template as Jinja does, and forgets what Jinja forgets.
#include "engine/text/template_text.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>

namespace ember {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

// One after the other with their lengths, so that no two lists look alike.
void append_part(std::string& out, char kind, std::string_view part) {
  out.append(1, kind).append(std::to_string(part.size())).append(":").append(part);
}

// The characters that a string literal stands for; `at` moves behind its closing quote.
std::string unquoted(std::string_view tag, size_t& at) {
  const char quote = tag[at++];
  std::string out;
  for (; at < tag.size() && tag[at] != quote; ++at) {
    char c = tag[at];
    if (c == '\\' && at + 1 < tag.size()) {
      constexpr std::string_view kEscapes = "nrt";
      constexpr std::string_view kMeant = "\n\r\t";
      c = tag[++at];
      const size_t known = kEscapes.find(c);
      const bool itself = c == '\\' || c == '\'' || c == '"';
      if (known != std::string_view::npos) {
        c = kMeant[known];
      } else if (!itself) {
        out += '\\';
      }
    }
    out += c;
  }
  ++at;
  return out;
}

void append_tokens(std::string& out, std::string_view tag) {
  for (size_t at = 0; at < tag.size();) {
    const char c = tag[at];
    if (kSpaces.find(c) != std::string_view::npos) {
      ++at;
    } else if (c == '\'' || c == '"') {
      append_part(out, 's', unquoted(tag, at));
    } else if (is_word(c)) {
      const size_t begin = at;
      while (at < tag.size() && is_word(tag[at])) ++at;
      append_part(out, 'w', tag.substr(begin, at - begin));
    } else {
      append_part(out, 'o', tag.substr(at++, 1));
    }
  }
}

// Where the tag's closing mark begins; strings may hold one.
size_t end_of_tag(std::string_view text, size_t at, std::string_view close) {
  char quote = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') {
        ++at;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (text.substr(at).starts_with(close)) {
      return at;
    } else if (c == '\'' || c == '"') {
      quote = c;
    }
  }
  return text.size();
}

std::string with_line_feeds(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r') {
      if (!text.substr(at + 1).starts_with('\n')) out += '\n';
    } else {
      out += text[at];
    }
  }
  return out;
}

void strip_end(std::string& data) { data.resize(data.find_last_not_of(kSpaces) + 1); }

// lstrip_blocks: the blanks between a line's beginning and a block. `data` is all since the last
// tag; a line begins there only if the template does.
void strip_line_start(std::string& data, bool at_start) {
  const size_t last = data.find_last_not_of(" \t");
  if (last == std::string::npos ? at_start : data[last] == '\n') data.resize(last + 1);
}

}  // namespace

std::string normal_template(std::string_view as_published) {
  const std::string with_newlines = with_line_feeds(as_published);
  std::string_view text = with_newlines;
  if (text.ends_with('\n')) text.remove_suffix(1);  // as Jinja does
  std::string out;
  std::string data;  // since the last tag that is no comment
  size_t at = 0;
  while (at < text.size()) {
    size_t open = at;
    while (open < text.size() &&
           !(text[open] == '{' && open + 1 < text.size() &&
             std::string_view("{%#").find(text[open + 1]) != std::string_view::npos)) {
      ++open;
    }
    std::string piece(text.substr(at, open - at));
    if (open == text.size()) {
      data += piece;
      break;
    }
    const char kind = text[open + 1];
    const bool strips = text.substr(open + 2).starts_with('-');
    if (strips) {
      strip_end(piece);
    } else if (kind != '{' && !text.substr(open + 2).starts_with('+')) {
      strip_line_start(piece, at == 0 || text[at - 1] == '\n');
    }
    data += piece;
    const size_t inside = open + 2 + (strips ? 1 : 0);
    const char close_text[] = {kind == '{' ? '}' : kind, '}'};
    const std::string_view close(close_text, 2);
    const size_t end = kind == '#' ? std::min(text.find(close, inside), text.size())
                                   : end_of_tag(text, inside, close);
    std::string_view tag = text.substr(inside, end - inside);
    at = std::min(end + 2, text.size());
    if (tag.ends_with('-')) {
      tag.remove_suffix(1);
      at = std::min(text.find_first_not_of(kSpaces, at), text.size());
    } else if (kind != '{' && text.substr(at).starts_with('\n')) {
      ++at;  // trim_blocks
    }
    if (kind == '#') continue;
    if (!data.empty()) append_part(out, 'd', data);
    data.clear();
    out += kind;
    append_tokens(out, tag);
  }
  if (!data.empty()) append_part(out, 'd', data);
  return out;
}

std::string template_digest(std::string_view text) {
  const std::string normal = normal_template(text);
  const XXH128_hash_t hash = XXH3_128bits(normal.data(), normal.size());
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex;
}

}  // namespace ember
