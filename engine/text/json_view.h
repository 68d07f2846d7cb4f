// JSON view: a value in a JSON document and the way to it, so that every complaint names the place.
//
// Journey    none; reads tokenizer.json, tokenizer_config.json and messages files
// Invariant  a view lives no longer than its document
// Threads    pure functions
// Not here   public headers: only .cc files of this folder include this one (it shows the library)
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace ember {

using Json = nlohmann::json;

// Errors: kInvalidArgument with `name` and the parser's own words.
Result<Json> parse_json(std::string_view text, const std::string& name);

class JsonView {
 public:
  // The document itself; `name` is its file's.
  JsonView(const Json& value, std::string name) : JsonView(value, std::move(name), ": ") {}

  const Json& value() const { return *value_; }
  const std::string& place() const { return place_; }
  bool is_null() const { return value_->is_null(); }

  // The member `key`; its absence is an error.
  Result<JsonView> member(std::string_view key) const;
  // The member `key`, or nothing when it is absent or null.
  std::optional<JsonView> find(std::string_view key) const;
  JsonView element(size_t index) const;
  // The member of a large object that `item` is, by name.
  JsonView entry(const std::string& key, const Json& item) const;

  Result<bool> boolean() const;
  Result<std::string> string() const;
  // An integer in [0, limit).
  Result<int> index_below(int limit) const;
  Status expect_object() const;
  Status expect_array() const;
  // Refuses a member whose key is none of `known`.
  Status expect_keys(std::initializer_list<std::string_view> known) const;

  // "place: found a number, expected `expected`"
  Error wrong(const std::string& expected) const;
  // "place: `what` is not supported"
  Error unsupported(const std::string& what) const;

 private:
  JsonView(const Json& value, std::string place, std::string_view join)
      : value_(&value), place_(std::move(place)), join_(join) {}

  const Json* value_;
  std::string place_;      // "file: model.merges[3]"
  std::string_view join_;  // between the place and a member's name
};

}  // namespace ember
