// JSON view: typed access that names the place and what was found.
#include "engine/text/json_view.h"

#include <algorithm>

namespace ember {
namespace {

std::string describe(const Json& value) {
  constexpr size_t kShown = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string() && value.get_ref<const std::string&>().size() > kShown) {
    return "a long string";
  }
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& name) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    std::string_view why = e.what();
    const size_t bracket = why.find("] ");  // "[json.exception.parse_error.101] parse error at ..."
    if (bracket != std::string_view::npos) why.remove_prefix(bracket + 2);
    return Error{ErrorCode::kInvalidArgument, name + ": not valid JSON: " + std::string(why)};
  }
}

Result<JsonView> JsonView::member(std::string_view key) const {
  EMBER_TRY(expect_object());
  const auto found = value_->find(key);
  if (found == value_->end()) {
    return Error{ErrorCode::kInvalidArgument, place_ + ": \"" + std::string(key) + "\" is missing"};
  }
  return JsonView(*found, place_ + std::string(join_) + std::string(key), ".");
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonView(*found, place_ + std::string(join_) + std::string(key), ".");
}

JsonView JsonView::element(size_t index) const {
  return {(*value_)[index], place_ + "[" + std::to_string(index) + "]", "."};
}

JsonView JsonView::entry(const std::string& key, const Json& item) const {
  return {item, place_ + "[\"" + key + "\"]", "."};
}

Result<bool> JsonView::boolean() const {
  if (!value_->is_boolean()) return wrong("true or false");
  return value_->get<bool>();
}

Result<std::string> JsonView::string() const {
  if (!value_->is_string()) return wrong("a string");
  return value_->get<std::string>();
}

Result<int> JsonView::index_below(int limit) const {
  const std::string expected = "an integer from 0 to " + std::to_string(limit - 1);
  if (!value_->is_number_unsigned()) return wrong(expected);
  const auto number = value_->get<uint64_t>();
  if (number >= static_cast<uint64_t>(limit)) return wrong(expected);
  return static_cast<int>(number);
}

Status JsonView::expect_object() const {
  if (!value_->is_object()) return wrong("an object");
  return {};
}

Status JsonView::expect_array() const {
  if (!value_->is_array()) return wrong("an array");
  return {};
}

Status JsonView::expect_keys(std::initializer_list<std::string_view> known) const {
  EMBER_TRY(expect_object());
  for (const auto& item : value_->items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      return unsupported("the key \"" + item.key() + "\"");
    }
  }
  return {};
}

Error JsonView::wrong(const std::string& expected) const {
  return {ErrorCode::kInvalidArgument,
          place_ + ": found " + describe(*value_) + ", expected " + expected};
}

Error JsonView::unsupported(const std::string& what) const {
  return {ErrorCode::kUnsupported, place_ + ": " + what + " is not supported"};
}

}  // namespace ember
