// Logits command: token ids in, the logits at every position out; no tokenizer, no store.
//
// Journey    ids file -> [logits] -> model forward -> .npy file
// Owns       a block pool of its own, just large enough for the ids
// Not here   flags (tools/emberkv.cc)
#pragma once

#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "kernels/latent_attention.h"

namespace ember {

struct LogitsOptions {
  std::string model;     // checkpoint folder
  std::string ids_file;  // token ids separated by white space
  AttentionForm attention = AttentionForm::kAbsorb;
  DType precision = DType::kBf16;  // of activations and cached rows: kBf16 or kF32
  std::string out_path;            // float32 [T, vocab], NumPy's format
  int workers = 0;                 // 0: one for each core
};

// Errors: of config and checkpoint; kInvalidArgument naming the line and word of a bad id, or more
// ids than the model has positions.
Status run_logits(const LogitsOptions& options);

}  // namespace ember
