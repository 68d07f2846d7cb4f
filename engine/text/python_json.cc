// Python JSON: the separators are Python's, the scalars the library's own.
#include "engine/text/python_json.h"

namespace ember {

Result<OrderedJson> parse_ordered_json(std::string_view text, const std::string& what) {
  OrderedJson value = OrderedJson::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return Error{ErrorCode::kInvalidArgument, what + ": found no valid JSON, expected some"};
  }
  return value;
}

std::string python_json(const OrderedJson& value, bool compact) {
  const char* comma = compact ? "," : ", ";
  if (value.is_object()) {
    std::string out = "{";
    for (const auto& [key, member] : value.items()) {
      if (out.size() > 1) out += comma;
      out += OrderedJson(key).dump();
      out += compact ? ":" : ": ";
      out += python_json(member, compact);
    }
    return out + "}";
  }
  if (value.is_array()) {
    std::string out = "[";
    for (const auto& element : value) {
      if (out.size() > 1) out += comma;
      out += python_json(element, compact);
    }
    return out + "]";
  }
  return value.dump();
}

}  // namespace ember
