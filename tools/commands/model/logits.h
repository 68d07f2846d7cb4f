// Logits command: token ids in, the logits at every position out; no tokenizer, no store.
//
// Journey    ids file -> [logits] -> model forward -> .npy file
// Not here   flags (tools/emberkv.cc)
#pragma once

#include <string>

#include "base/result.h"
#include "tools/commands/model/local_model.h"

namespace ember {

struct LogitsOptions {
  LocalModelOptions model;
  std::string ids_file;  // token ids separated by white space
  std::string out_path;  // float32 [T, vocab], NumPy's format
};

// Errors: of config and checkpoint; kInvalidArgument naming the line and word of a bad id, or more
// ids than the model has positions.
Status run_logits(const LogitsOptions& options);

}  // namespace ember
