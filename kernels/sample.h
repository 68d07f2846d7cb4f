// Sample: the next token of each row, greedy or by an exponential race.
//
// Journey    logits -> [sample] -> engine/runtime/sequence
// Invariant  the draw for (seed, position, token) is counter-based, so a resumed answer goes on by
//            the numbers that the uncut one would have drawn; ties go to the lowest id
// Source     argmax_j p_j / e_j with e_j ~ Exp(1) is an exact draw from p (DeepSeek's generate.py)
#pragma once

#include <cstddef>
#include <cstdint>

namespace ember {

class CpuTeam;

struct SampleParams {
  size_t rows = 0;
  size_t vocab = 0;                     // columns of logits
  size_t valid_vocab = 0;               // ids at and beyond this are never chosen
  const float* logits = nullptr;        // [rows, vocab]
  const float* temperatures = nullptr;  // [rows]; 0: greedy
  const uint64_t* seeds = nullptr;      // [rows]
  const int32_t* positions = nullptr;   // [rows]: position of the token that is drawn
  int32_t* ids = nullptr;               // out [rows]
};

void sample_cpu(const SampleParams& params, CpuTeam& team);

}  // namespace ember
