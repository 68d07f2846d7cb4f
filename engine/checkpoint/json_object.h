// JSON object: a parsed object whose fields are asked for by name and type; foreign JSON stays
// inside.
//
// Journey    config.json, index, safetensors header -> [json_object] -> model_config, checkpoint
// Owns       the parsed document, shared by the objects taken out of it
// Invariant  no field is read as another type than it has; a key stands once in an object
// Not here   what a field means
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ember {

class JsonObject {
 public:
  // `where` names the document in messages. Errors: kCorruption when it is no JSON object or when a
  // key stands twice.
  static Result<JsonObject> parse(std::string_view text, const std::string& where);
  // Errors: as parse; kIo when the file is absent, unreadable or larger than `max_bytes`.
  static Result<JsonObject> read_file(const std::string& path, size_t max_bytes);

  std::vector<std::string> keys() const;
  bool contains(const std::string& field) const;  // also where it is null
  bool has(const std::string& field) const;       // there and not null

  // Errors of all: kInvalidArgument naming the document, the field, what was found, what was
  // expected.
  Result<JsonObject> object(const std::string& field) const;
  Result<std::string> text(const std::string& field) const;
  Result<bool> boolean(const std::string& field) const;
  Result<double> number(const std::string& field) const;
  Result<uint64_t> whole(const std::string& field) const;  // an integer >= 0
  Result<std::vector<uint64_t>> whole_list(const std::string& field) const;
  Result<std::vector<uint64_t>> whole_or_list(const std::string& field) const;
  Result<std::vector<std::string>> text_list(const std::string& field) const;

  // "config.json: field rope_scaling.factor": how messages name a field.
  std::string name(const std::string& field) const;

 private:
  struct Impl;
  explicit JsonObject(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  Error wrong_type(const std::string& field, std::string_view expected) const;

  std::shared_ptr<const Impl> impl_;
};

// `text` as a JSON string with its quotes.
std::string json_quote(std::string_view text);
// A number as messages show it: six digits, an exponent where it is far from 1.
std::string shown_number(double value);

}  // namespace ember
