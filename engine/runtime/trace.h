// Trace: what the engine did and when, kept while it is asked for, in a ring of bounded size.
//
// Journey    scheduler -> [trace] -> trace_file
// Owns       the last `capacity` events
// Invariant  recording allocates nothing; when the ring is full the oldest event goes and is
//            counted
// Threads    engine thread only
// Not here   the file's form (engine/runtime/trace_file.h)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ember {

enum class TraceKind : uint8_t {
  kQueued,   // a request's: until it had device slots
  kMatch,    // looking its prefix up; value: known tokens
  kRestore,  // until its rows were readable; value: tokens that came
  kGroup,    // of a restore, from its begin until a layer group of all blocks was readable;
             // value: the group
  kPrefill,  // until the first token was drawn; value: tokens computed
  kDecode,   // until the last one was drawn; value: tokens drawn
  kCancel,   // when it was cancelled
  kStep,     // from its submission to its end; value: tokens
  kLayer,    // of a step; value: the layer
};

constexpr const char* trace_kind_name(TraceKind kind) {
  constexpr const char* kNames[] = {"queued",  "match",  "restore", "restore group", "prefill",
                                    "decode",  "cancel", "step",    "layer"};
  return kNames[static_cast<size_t>(kind)];
}

struct TraceEvent {
  TraceKind kind = TraceKind::kStep;
  int64_t begin_us = 0;
  int64_t end_us = 0;
  uint64_t id = 0;  // of the request, from 1; of a step and its layers, the step's number
  uint64_t value = 0;
};

class Trace {
 public:
  explicit Trace(size_t capacity) : ring_(std::max<size_t>(1, capacity)) {}

  void add(const TraceEvent& event) {
    ring_[static_cast<size_t>(added_ % ring_.size())] = event;
    ++added_;
  }
  // In the order in which they were recorded: by their ends.
  std::vector<TraceEvent> events() const {
    const uint64_t kept = std::min<uint64_t>(added_, ring_.size());
    std::vector<TraceEvent> events;
    events.reserve(static_cast<size_t>(kept));
    for (uint64_t i = added_ - kept; i < added_; ++i) {
      events.push_back(ring_[static_cast<size_t>(i % ring_.size())]);
    }
    return events;
  }
  uint64_t dropped() const { return added_ - std::min<uint64_t>(added_, ring_.size()); }

 private:
  std::vector<TraceEvent> ring_;
  uint64_t added_ = 0;
};

}  // namespace ember
