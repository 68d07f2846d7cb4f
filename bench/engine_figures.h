// Engine figures: one long prompt through the whole engine: computed, restored, and decoded after.
//
// Journey    model folder -> [engine_figures] -> engine_bench
// Threads    engine thread
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/model/attention_mode.h"

namespace ember {

struct EngineFiguresOptions {
  std::string model;
  std::string store;  // a folder that is absent
  AttentionMode attention = AttentionMode::kAuto;
  uint32_t chunk_tokens = 256;
  std::vector<size_t> lengths;   // ascending; the last is the prompt's, its chunks reach them
  size_t restored_tokens = 2048;  // of these are restored
};

struct EngineFigures {
  struct Prefill {
    size_t tokens = 0;
    double seconds = 0;  // from the prompt's first token on
  };
  struct Restore {
    double ready_s = 0;        // match to the last layer readable
    double first_token_s = 0;  // and the last token computed
  };
  std::vector<Prefill> prefill;  // of each length, and of restored_tokens
  size_t restored_tokens = 0;
  double restored_computed_s = 0;  // prefill of as many
  uint64_t restored_bytes = 0;
  Restore disk, host;
  double decode_s = 0;          // a token, steady
  size_t decode_position = 0;   // of the middle one
  double read_bytes_per_s = 0;  // of memory, right after
  uint32_t steps = 0;           // steady ones
  uint32_t allocating_steps = 0;  // of them, by the engine thread
  uint64_t anonymous_bytes = 0;
  uint64_t ram_bytes = 0;       // budget
};

// Errors: of model and store; a prompt that is known and yet computed again.
Result<EngineFigures> measure_engine(const EngineFiguresOptions& options);

}  // namespace ember
