// tokenize: the loop over lines and the two directions.
#include "tools/commands/model/tokenize.h"

#include <cstdint>
#include <istream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "engine/text/tokenizer.h"

namespace ember {
namespace {

using Json = nlohmann::json;

Error malformed(const std::string& found, const char* expected) {
  return {ErrorCode::kInvalidArgument, "found " + found + ", expected " + expected};
}

// The member `key` of the JSON object that `line` holds.
Result<Json> member_of(const std::string& line, const char* key, const char* expected) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) {
    return malformed("a blank line", expected);
  }
  Json object = Json::parse(line, nullptr, false);
  if (object.is_discarded()) return malformed("a line that is not JSON", expected);
  if (!object.is_object()) return malformed(object.type_name(), expected);
  const auto member = object.find(key);
  if (member == object.end()) {
    return malformed(std::string("an object without \"") + key + "\"", expected);
  }
  return Json(std::move(*member));
}

Result<std::string> encode_line(Tokenizer& tokenizer, const std::string& line, bool bos) {
  constexpr const char* kExpected = R"({"text": "..."})";
  EMBER_ASSIGN(const Json text, member_of(line, "text", kExpected));
  if (!text.is_string()) {
    return malformed(std::string("\"text\" that is ") + text.type_name(), kExpected);
  }
  EMBER_ASSIGN(const std::vector<TokenId> ids,
               tokenizer.encode(text.get_ref<const std::string&>(), bos));
  return Json{{"ids", ids}}.dump();
}

Result<std::string> decode_line(const Tokenizer& tokenizer, const std::string& line,
                                bool skip_special) {
  constexpr const char* kExpected = R"({"ids": [1, 2, ...]})";
  EMBER_ASSIGN(const Json list, member_of(line, "ids", kExpected));
  if (!list.is_array()) {
    return malformed(std::string("\"ids\" that is ") + list.type_name(), kExpected);
  }
  std::vector<TokenId> ids;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& id = list[i];
    constexpr int64_t kMostId = std::numeric_limits<TokenId>::max();
    const bool fits = id.is_number_unsigned()
                          ? id.get<uint64_t>() <= uint64_t{kMostId}
                          : id.is_number_integer() && id.get<int64_t>() >= -kMostId;
    if (!fits) return malformed("ids[" + std::to_string(i) + "] = " + id.dump(), "a token id");
    ids.push_back(id.get<TokenId>());
  }
  EMBER_ASSIGN(const std::string text, tokenizer.decode(ids, skip_special));
  return Json{{"text", text}}.dump();
}

}  // namespace

Status run_tokenize(const TokenizeOptions& options, std::istream& in, std::ostream& out) {
  EMBER_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::load(options.tokenizer_path));
  std::string line;
  uint64_t number = 0;
  while (std::getline(in, line)) {
    ++number;
    const bool last_and_empty = line.empty() && in.peek() == std::istream::traits_type::eof();
    if (last_and_empty) break;
    const Result<std::string> answer = options.decode
                                           ? decode_line(*tokenizer, line, options.skip_special)
                                           : encode_line(*tokenizer, line, options.bos);
    if (!answer.ok()) {
      out.flush();
      return Error{answer.error().code,
                   "line " + std::to_string(number) + ": " + answer.error().message};
    }
    out << *answer << '\n';
  }
  if (in.bad())
    return Error{ErrorCode::kIo, "the input cannot be read after line " + std::to_string(number)};
  if (!out.flush()) return Error{ErrorCode::kIo, "the output cannot be written"};
  return {};
}

}  // namespace ember
