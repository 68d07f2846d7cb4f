// JSON object: nlohmann's parser behind typed getters; the only file of this folder that knows it.
#include "engine/checkpoint/json_object.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace ember {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownValueBytes = 60;
constexpr int kMostDepth = 64;

// What was found, short enough for a message.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownValueBytes) text = text.substr(0, kShownValueBytes) + "...";
  return text;
}

// Notes the first key that stands twice in one object, and nesting that only an attack would have.
class ParseWatch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    too_deep_ = too_deep_ || depth > kMostDepth;
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && duplicate_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_.back().insert(key).second) duplicate_ = shown(parsed);
    }
    return true;
  }
  const std::string& duplicate() const { return duplicate_; }
  bool too_deep() const { return too_deep_; }

 private:
  bool too_deep_ = false;
  std::vector<std::set<std::string>> open_;
  std::string duplicate_;
};

bool is_whole(const Json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
}

}  // namespace

struct JsonObject::Impl {
  std::shared_ptr<const Json> document;
  const Json* object = nullptr;
  std::string where;
  std::string prefix;  // "rope_scaling." inside that object
};

Result<JsonObject> JsonObject::parse(std::string_view text, const std::string& where) {
  ParseWatch watch;
  auto impl = std::make_shared<Impl>();
  try {
    auto document = std::make_shared<const Json>(Json::parse(
        text.begin(), text.end(), [&](int depth, Json::parse_event_t event, const Json& parsed) {
          return watch(depth, event, parsed);
        }));
    impl->document = document;
    impl->object = document.get();
    impl->where = where;
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kCorruption, where + ": not valid JSON: " + error.what()};
  }
  if (watch.too_deep()) {
    return Error{ErrorCode::kCorruption,
                 where + ": nested deeper than " + std::to_string(kMostDepth) + " levels"};
  }
  if (!watch.duplicate().empty()) {
    return Error{ErrorCode::kCorruption, where + ": key " + watch.duplicate() +
                                             " stands twice in one object, expected once"};
  }
  if (!impl->object->is_object()) {
    return Error{ErrorCode::kCorruption,
                 where + ": found " + shown(*impl->object) + ", expected a JSON object"};
  }
  return JsonObject(std::move(impl));
}

Result<JsonObject> JsonObject::read_file(const std::string& path, size_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kIo, path + ": cannot be opened, expected a JSON file"};
  std::string text;
  char chunk[4096];
  while (file.read(chunk, sizeof chunk) || file.gcount() > 0) {
    text.append(chunk, static_cast<size_t>(file.gcount()));
    if (text.size() > max_bytes) {
      return Error{ErrorCode::kIo, path + ": larger than " + std::to_string(max_bytes) +
                                       " bytes, expected a small JSON file"};
    }
  }
  if (file.bad()) return Error{ErrorCode::kIo, path + ": reading failed"};
  return parse(text, path);
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  keys.reserve(impl_->object->size());
  for (auto it = impl_->object->begin(); it != impl_->object->end(); ++it) keys.push_back(it.key());
  return keys;
}

bool JsonObject::contains(const std::string& field) const { return impl_->object->contains(field); }

bool JsonObject::has(const std::string& field) const {
  const auto it = impl_->object->find(field);
  return it != impl_->object->end() && !it->is_null();
}

std::string JsonObject::name(const std::string& field) const {
  return impl_->where + ": field " + impl_->prefix + field;
}

Error JsonObject::wrong_type(const std::string& field, std::string_view expected) const {
  const auto it = impl_->object->find(field);
  const std::string found =
      it == impl_->object->end() ? std::string("missing") : "found " + shown(*it);
  return {ErrorCode::kInvalidArgument,
          name(field) + ": " + found + ", expected " + std::string(expected)};
}

Result<JsonObject> JsonObject::object(const std::string& field) const {
  const auto it = impl_->object->find(field);
  if (it == impl_->object->end() || !it->is_object()) return wrong_type(field, "an object");
  auto impl = std::make_shared<Impl>(*impl_);
  impl->object = &*it;
  impl->prefix += field + ".";
  return JsonObject(std::move(impl));
}

Result<std::string> JsonObject::text(const std::string& field) const {
  const auto it = impl_->object->find(field);
  if (it == impl_->object->end() || !it->is_string()) return wrong_type(field, "a string");
  return it->get<std::string>();
}

Result<bool> JsonObject::boolean(const std::string& field) const {
  const auto it = impl_->object->find(field);
  if (it == impl_->object->end() || !it->is_boolean()) return wrong_type(field, "true or false");
  return it->get<bool>();
}

Result<double> JsonObject::number(const std::string& field) const {
  const auto it = impl_->object->find(field);
  if (it == impl_->object->end() || !it->is_number()) return wrong_type(field, "a number");
  const auto value = it->get<double>();
  if (!std::isfinite(value)) return wrong_type(field, "a finite number");
  return value;
}

Result<uint64_t> JsonObject::whole(const std::string& field) const {
  const auto it = impl_->object->find(field);
  if (it == impl_->object->end() || !is_whole(*it)) {
    return wrong_type(field, "a whole number, zero or more");
  }
  return it->get<uint64_t>();
}

Result<std::vector<uint64_t>> JsonObject::whole_list(const std::string& field) const {
  const auto it = impl_->object->find(field);
  constexpr std::string_view kExpected = "a list of whole numbers";
  if (it == impl_->object->end() || !it->is_array()) return wrong_type(field, kExpected);
  std::vector<uint64_t> list;
  list.reserve(it->size());
  for (const Json& value : *it) {
    if (!is_whole(value)) return wrong_type(field, kExpected);
    list.push_back(value.get<uint64_t>());
  }
  return list;
}

Result<std::vector<uint64_t>> JsonObject::whole_or_list(const std::string& field) const {
  const auto it = impl_->object->find(field);
  if (it != impl_->object->end() && is_whole(*it)) {
    return std::vector<uint64_t>{it->get<uint64_t>()};
  }
  if (it == impl_->object->end() || !it->is_array()) {
    return wrong_type(field, "a whole number or a list of them");
  }
  return whole_list(field);
}

Result<std::vector<std::string>> JsonObject::text_list(const std::string& field) const {
  const auto it = impl_->object->find(field);
  constexpr std::string_view kExpected = "a list of strings";
  if (it == impl_->object->end() || !it->is_array()) return wrong_type(field, kExpected);
  std::vector<std::string> list;
  for (const Json& value : *it) {
    if (!value.is_string()) return wrong_type(field, kExpected);
    list.push_back(value.get<std::string>());
  }
  return list;
}

std::string json_quote(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string shown_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace ember
