// Small tokenizer: a tokenizer.json for tests, with every byte and a few merges, to be altered.
//
// Journey    none; test data
// Invariant  ids 0..255 are the bytes in order of their characters' code points; merges follow
#pragma once

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/byte_level.h"
#include "engine/text/tokenizer.h"
#include "tests/support/temp_folder.h"

namespace ember {

inline std::vector<std::string> byte_characters() {
  std::vector<std::string> characters;
  for (int b = 0; b < 256; ++b) {
    std::string character;
    append_byte_characters(character, std::string(1, static_cast<char>(b)));
    characters.push_back(character);
  }
  std::sort(characters.begin(), characters.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return characters;
}

inline nlohmann::json small_tokenizer(
    const std::vector<std::pair<std::string, std::string>>& merges) {
  nlohmann::json vocab;
  int next = 0;
  for (const std::string& character : byte_characters()) vocab[character] = next++;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [left, right] : merges) {
    if (!vocab.contains(left + right)) vocab[left + right] = next++;
    list.push_back({left, right});
  }
  const nlohmann::json byte_level = {{"type", "ByteLevel"},
                                     {"add_prefix_space", false},
                                     {"trim_offsets", true},
                                     {"use_regex", false}};
  return {{"version", "1.0"},
          {"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}};
}

// Adds an added token with the next free id and the flags that are named.
inline int add_token(nlohmann::json& file, const std::string& content,
                     const std::vector<std::string>& flags = {}) {
  const int id = static_cast<int>(file["model"]["vocab"].size() + file["added_tokens"].size());
  nlohmann::json token = {{"id", id},        {"content", content}, {"single_word", false},
                          {"lstrip", false}, {"rstrip", false},    {"normalized", false},
                          {"special", false}};
  for (const std::string& flag : flags) token[flag] = true;
  file["added_tokens"].push_back(token);
  return id;
}

inline Result<std::unique_ptr<Tokenizer>> load_json(const nlohmann::json& file) {
  const TempFolder folder;
  return Tokenizer::load(folder.write("tokenizer.json", file.dump()));
}

}  // namespace ember
