// Step inputs: what a step's operations read that is not a latent or a weight, sent up in one copy.
//
// Journey    StepSequence -> [step_inputs] -> device memory, read by every operation of the step
// Owns       one pinned and one device buffer of the same shape, sized for the largest step
// Invariant  filled only between steps; the block tables stand last, so a step sends only its own
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/model/forward.h"
#include "kernels/block_copy.h"
#include "kernels/device.h"

namespace ember {

// Where each array is, in the pinned buffer or on the device.
struct StepArrays {
  uint64_t* seeds = nullptr;            // [samples]
  float* temperatures = nullptr;        // [samples]
  int32_t* sample_positions = nullptr;  // [samples]
  int32_t* ids = nullptr;               // [rows]
  int32_t* positions = nullptr;         // [rows]
  int32_t* sequences = nullptr;         // [rows]
  int32_t* logit_rows = nullptr;        // [logit rows]: rows of the step that get logits
  int32_t* tables = nullptr;            // [sequences, max_blocks]
};

// Drawn rows that lie side by side in the logits: one operation draws them all.
struct SampleRun {
  size_t first_logit_row = 0;
  size_t first_sample = 0;
  size_t count = 0;
};

class StepInputs {
 public:
  StepInputs(const ForwardOptions& options, size_t block_tokens, size_t vocab);
  Status allocate(Device& device);

  // Fills the pinned side. Misuse (see Forward::build) aborts.
  void fill(std::span<const StepSequence> sequences);

  const StepArrays& on_device() const { return device_arrays_; }
  BlockCopyParams upload() const;
  size_t rows() const { return rows_; }
  size_t absorb_rows() const { return absorb_rows_; }  // they come first
  size_t logit_rows() const { return logit_rows_; }
  size_t samples() const { return samples_; }
  std::span<const SampleRun> sample_runs() const { return runs_; }

 private:
  StepArrays arrays_at(std::byte* base) const;
  void add_sequence(int32_t index, const StepSequence& sequence);
  void add_sample(const StepSequence& sequence, int32_t position);

  ForwardOptions limits_;
  size_t block_tokens_;
  size_t vocab_;
  size_t tables_offset_ = 0;
  Buffer pinned_;
  Buffer device_;
  StepArrays host_arrays_;
  StepArrays device_arrays_;
  size_t rows_ = 0;
  size_t absorb_rows_ = 0;
  size_t logit_rows_ = 0;
  size_t samples_ = 0;
  size_t used_bytes_ = 0;
  std::vector<SampleRun> runs_;
};

}  // namespace ember
