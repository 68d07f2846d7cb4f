// Package answers: compares a tokenizer with what the `tokenizers` package said of the same files.
//
// Journey    none; test data: tokenizers_package.py writes it
// Invariant  each text is encoded bare and whole, decoded, and decoded one id after the other
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "engine/text/text_file.h"
#include "engine/text/utf8.h"
#include "tests/engine/text/small_tokenizer.h"

namespace ember {

using TokenIds = std::vector<TokenId>;

// The text of a stream; complains of half a character.
inline std::string streamed(const Tokenizer& tokenizer, const TokenIds& ids, bool skip_special) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = decoder.push(id);
    EXPECT_EQ(find_ill_formed(piece), std::string::npos);
    text += piece;
  }
  return text + decoder.finish();
}

inline void expect_same_answers(Tokenizer& tokenizer, const nlohmann::json& answers) {
  constexpr int kShown = 3;  // failures of one vocabulary
  int failures = 0;
  const auto check = [&](bool same, const std::string& what, const nlohmann::json& one) {
    if (!same && ++failures <= kShown) ADD_FAILURE() << what << ": " << one.dump();
  };
  for (const auto& one : answers["cases"]) {
    const auto& text = one["text"].get_ref<const std::string&>();
    const auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    check(*ids == one["ids"].get<TokenIds>(), "ids " + nlohmann::json(*ids).dump(), one);
    if (!answers["file"].is_null() && tokenizer.adds_bos()) {
      const auto whole = tokenizer.encode(text, true);
      check(whole.ok() && *whole == one["whole"].get<TokenIds>(), "whole", one);
    }
    const auto expected = one["ids"].get<TokenIds>();
    const auto decoded = tokenizer.decode(expected, false);
    check(decoded.ok() && *decoded == one["decoded"], "decoded", one);
    check(streamed(tokenizer, expected, false) == one["decoded"], "streamed", one);
  }
  for (const auto& one : answers["decoded"]) {
    const auto ids = one["ids"].get<TokenIds>();
    check(tokenizer.decode(ids, false).value() == one["text"], "drawn ids", one);
    check(tokenizer.decode(ids, true).value() == one["plain"], "drawn ids, plain", one);
    check(streamed(tokenizer, ids, false) == one["text"], "drawn ids, streamed", one);
    check(streamed(tokenizer, ids, true) == one["plain"], "drawn ids, streamed, plain", one);
  }
}

// All vocabularies of a file of answers; those without a file of their own are `other`'s.
inline size_t expect_package_answers(const std::string& path, Tokenizer& other) {
  const auto text = read_text_file(path);
  EXPECT_TRUE(text.ok()) << path;
  const auto all = nlohmann::json::parse(*text);
  size_t texts = 0;
  for (const auto& one : all["vocabularies"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    texts += one["cases"].size();
    if (one["file"].is_null()) {
      expect_same_answers(other, one);
      continue;
    }
    nlohmann::json file = one["file"];
    file["model"].update(all["bases"][file["model"]["vocab"].get<std::string>()]);
    auto tokenizer = load_json(file);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    if (tokenizer.ok()) expect_same_answers(**tokenizer, one);
  }
  return texts;
}

}  // namespace ember
