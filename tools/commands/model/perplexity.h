// perplexity: how well a model foresees a text, for comparing precisions of weights and cache.
//
// Journey    text file -> [perplexity] -> model forward -> one number on standard output
// Invariant  each window of the text is read from position 0; its first token is not judged
// Threads    main
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "base/result.h"
#include "tools/commands/model/local_model.h"

namespace ember {

struct PerplexityOptions {
  LocalModelOptions model;
  std::string text_file;
  uint64_t context_tokens = 0;  // of a window; 0: the model's positions
  bool json = false;
};

// Errors: those of the files and of the model; kInvalidArgument for a text of less than 2 tokens.
Status run_perplexity(const PerplexityOptions& options, std::ostream& out);

}  // namespace ember
