// Python JSON: writes JSON as json.dumps does, which templates that show JSON were made with.
//
// Journey    tool definitions and arguments -> [python_json] -> chat templates
// Invariant  keys keep their order; non-ASCII characters stay; no indentation
// Not here   public headers: only .cc files of this folder include this one (it shows the library)
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ember {

using OrderedJson = nlohmann::ordered_json;

// `what` names the text in errors. Errors: kInvalidArgument.
Result<OrderedJson> parse_ordered_json(std::string_view text, const std::string& what);

// `compact`: without the space after ',' and ':'.
std::string python_json(const OrderedJson& value, bool compact = false);

}  // namespace ember
