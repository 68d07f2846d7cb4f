// Tokenizer config: what EmberKV uses of a tokenizer_config.json.
//
// Journey    none; read once at start
// Invariant  only these keys are read; the tokenizer itself is tokenizer.json alone
// Not here   the texts' ids (tokenizer.cc), what the template does (chat_template.h)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ember {

struct TokenizerConfig {
  std::string bos_text;  // empty: none
  std::string eos_text;
  std::optional<bool> adds_bos;  // add_bos_token, where the key is there
  std::string chat_template;
};

// A token may be written as text or as an object with "content"; a list of named templates gives
// the one called "default". Errors: kInvalidArgument naming `name` and the key.
Result<TokenizerConfig> parse_tokenizer_config(std::string_view json_text, const std::string& name);

}  // namespace ember
