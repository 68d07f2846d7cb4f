// Step inputs: laid out once, filled anew for every step without allocating.
#include "engine/model/step_inputs.h"

#include <algorithm>

#include "base/check.h"

namespace ember {
namespace {

constexpr size_t kArrayAlignment = 64;

// Hands out aligned places in a buffer, in order.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <typename T>
  T* take(size_t count) {
    std::byte* place = base_ + used_;
    used_ += (count * sizeof(T) + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
    return reinterpret_cast<T*>(place);
  }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

}  // namespace

StepInputs::StepInputs(const ForwardOptions& options, size_t block_tokens, size_t vocab)
    : limits_(options), block_tokens_(block_tokens), vocab_(vocab) {
  runs_.reserve(limits_.max_sequences);
}

StepArrays StepInputs::arrays_at(std::byte* base) const {
  Carver carver(base);
  StepArrays arrays;
  arrays.seeds = carver.take<uint64_t>(limits_.max_sequences);
  arrays.temperatures = carver.take<float>(limits_.max_sequences);
  arrays.sample_positions = carver.take<int32_t>(limits_.max_sequences);
  arrays.ids = carver.take<int32_t>(limits_.max_rows);
  arrays.positions = carver.take<int32_t>(limits_.max_rows);
  arrays.sequences = carver.take<int32_t>(limits_.max_rows);
  arrays.logit_rows = carver.take<int32_t>(limits_.max_logit_rows);
  arrays.tables = carver.take<int32_t>(limits_.max_sequences * limits_.max_blocks);
  return arrays;
}

Status StepInputs::allocate(Device& device) {
  const auto padded = [](size_t bytes) {
    return (bytes + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  };
  tables_offset_ = padded(limits_.max_sequences * sizeof(uint64_t)) +
                   padded(limits_.max_sequences * sizeof(float)) +
                   padded(limits_.max_sequences * sizeof(int32_t)) +
                   3 * padded(limits_.max_rows * sizeof(int32_t)) +
                   padded(limits_.max_logit_rows * sizeof(int32_t));
  const size_t bytes =
      tables_offset_ + padded(limits_.max_sequences * limits_.max_blocks * sizeof(int32_t));
  EMBER_ASSIGN(pinned_, device.allocate_pinned(bytes));
  EMBER_ASSIGN(device_, device.allocate(bytes));
  host_arrays_ = arrays_at(pinned_.bytes());
  device_arrays_ = arrays_at(device_.bytes());
  return {};
}

BlockCopyParams StepInputs::upload() const { return {pinned_.data(), device_.data(), used_bytes_}; }

void StepInputs::fill(std::span<const StepSequence> sequences) {
  EMBER_CHECK(!sequences.empty(), "a step without sequences");
  EMBER_CHECK(sequences.size() <= limits_.max_sequences, "more sequences than max_sequences");
  rows_ = 0;
  absorb_rows_ = 0;
  logit_rows_ = 0;
  samples_ = 0;
  runs_.clear();
  int32_t index = 0;
  for (const StepSequence& sequence : sequences) add_sequence(index++, sequence);
  used_bytes_ = tables_offset_ + sequences.size() * limits_.max_blocks * sizeof(int32_t);
}

void StepInputs::add_sequence(int32_t index, const StepSequence& sequence) {
  const size_t count = sequence.tokens.size();
  const auto first = static_cast<size_t>(sequence.first_position);
  EMBER_CHECK(count > 0, "a sequence without tokens in a step");
  EMBER_CHECK(sequence.first_position >= 0, "a position below 0");
  EMBER_CHECK(rows_ + count <= limits_.max_rows, "more rows than max_rows");
  EMBER_CHECK(first + count <= limits_.max_positions, "a position beyond max_positions");
  EMBER_CHECK(sequence.block_table.size() * block_tokens_ >= first + count,
              "a block table shorter than its sequence");
  EMBER_CHECK(sequence.logit_rows <= count, "logits asked for more rows than there are tokens");
  EMBER_CHECK(logit_rows_ + sequence.logit_rows <= limits_.max_logit_rows,
              "more logit rows than max_logit_rows");
  const AttentionForm form = sequence.form.value_or(limits_.attention);
  EMBER_CHECK(form == limits_.attention || limits_.both_forms, "a form without its activations");
  if (form == AttentionForm::kAbsorb) {
    EMBER_CHECK(absorb_rows_ == rows_, "an absorbed sequence behind a naive one");
    absorb_rows_ += count;
  }
  const size_t blocks = (first + count + block_tokens_ - 1) / block_tokens_;
  EMBER_CHECK(blocks <= limits_.max_blocks, "a sequence of more blocks than max_blocks");
  std::copy_n(sequence.block_table.begin(), blocks,
              host_arrays_.tables + static_cast<size_t>(index) * limits_.max_blocks);
  for (size_t i = 0; i < count; ++i) {
    const int32_t id = sequence.tokens[i];
    EMBER_CHECK(id >= 0 && static_cast<size_t>(id) < vocab_, "a token outside the vocabulary");
    host_arrays_.ids[rows_ + i] = id;
    host_arrays_.positions[rows_ + i] = sequence.first_position + static_cast<int32_t>(i);
    host_arrays_.sequences[rows_ + i] = index;
  }
  rows_ += count;
  for (size_t i = sequence.logit_rows; i > 0; --i) {
    host_arrays_.logit_rows[logit_rows_++] = static_cast<int32_t>(rows_ - i);
  }
  if (sequence.sample) add_sample(sequence, static_cast<int32_t>(first + count));
}

void StepInputs::add_sample(const StepSequence& sequence, int32_t position) {
  EMBER_CHECK(sequence.logit_rows > 0, "a draw needs logits of the last row");
  host_arrays_.seeds[samples_] = sequence.seed;
  host_arrays_.temperatures[samples_] = sequence.temperature;
  host_arrays_.sample_positions[samples_] = position;
  const size_t logit_row = logit_rows_ - 1;
  if (!runs_.empty() && runs_.back().first_logit_row + runs_.back().count == logit_row) {
    ++runs_.back().count;
  } else {
    runs_.push_back({logit_row, samples_, 1});
  }
  ++samples_;
}

}  // namespace ember
