// Shadow keeper: writes down what the disk's duel knows, from time to time and at the end, and
// brings it back at the next opening.
//
// Journey    eviction_ranks -> [shadow_keeper] -> <store>/SHADOWS -> eviction_ranks
// Owns       the writing or reading that is under way, a frame at a time
// Invariant  the engine thread touches no file but the head at opening, and at most a frame of
//            marks a visit; what was not brought back yet is not written over
// Threads    engine thread; one task of the read lane at a time has the file
// Not here   the bytes (store/cache/shadow_file.h), what they mean (prefix_index/duel.h)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/cache/cache_context.h"
#include "store/cache/shadow_file.h"

namespace ember {

class ShadowKeeper {
 public:
  explicit ShadowKeeper(CacheContext& context) : context_(context) {}

  // Before the first block enters the index. `most_bytes`: of the file and the one that replaces
  // it, together. Without this nothing is kept.
  void remember_in(ShadowPlace place, uint64_t most_bytes);
  // To be called after anything.
  void advance();
  // What was learned since the last writing is written, and nothing more after that.
  void close();
  void give_up() { place_.path.clear(); }

  uint64_t file_bytes() const { return file_bytes_; }
  uint64_t written_bytes() const { return written_bytes_; }

 private:
  bool on() const { return !place_.path.empty(); }
  EvictionRanks& ranks() { return context_.ledger.ranks(); }
  const Duel& duel() { return ranks().duel(Tier::kDisk); }
  bool due();
  ShadowHead head();
  void read_next();
  void begin();
  void write_next();
  void written(const Status& status, bool last);

  CacheContext& context_;
  ShadowPlace place_;
  size_t most_marks_ = 0;
  bool task_out_ = false;
  bool reading_ = false;
  uint32_t frames_left_ = 0;  // to be read
  std::shared_ptr<ShadowWriter> writer_;  // the task's while it is out
  uint64_t marks_written_ = 0;
  uint64_t requests_at_begin_ = 0;  // that the duel had seen
  uint64_t requests_kept_ = 0;
  int64_t next_us_ = 0;
  bool closing_ = false;
  uint64_t file_bytes_ = 0;
  uint64_t written_bytes_ = 0;
};

}  // namespace ember
