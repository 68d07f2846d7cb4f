// Simulation: what one tier of so many blocks would have had of a trace, under a policy, and what
// would have been written to it.
//
// Journey    trace -> [simulation] -> emberkv simulate
// Owns       for each distinct block its last use and its children in the tier; the evictable set
//            (prefix_index/eviction.h) and the duel (prefix_index/duel.h) that the real tier has
// Invariant  of a request the leading blocks that are there are hits; then all of it is used, or
//            inserted from its root on; what it names itself does not make room for it. What is
//            there is closed towards the root, so nothing is ever stranded
// Threads    one; pure
// Not here   the same through the real cache, with its tiers and its disk (bench/replay)
//
// It begins empty, and all that limits it is the number of blocks: pins, hints, ages, holes and the
// whole epochs in which a disk gives its space back are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "prefix_index/duel.h"
#include "prefix_index/eviction.h"
#include "store/replay/trace.h"

namespace ember::replay {

struct SimulationReport {
  uint64_t hits = 0;      // of the blocks that prompts looked up
  uint64_t inserted = 0;  // blocks, also such as were there before and had gone
  uint64_t evicted = 0;
  uint64_t switches = 0;  // of the duel's lead
};

class Simulation {
 public:
  Simulation(const Trace& trace, size_t capacity, EvictionPolicy policy);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // The trace's requests, one after the other.
  void request(const Request& request);
  SimulationReport report() const;
  size_t memory_bytes() const;  // without the trace's

 private:
  struct Block {
    uint32_t last_use = 0;  // 0: not there
    uint32_t children = 0;  // that are there
  };
  static BlockId id(BlockNumber block) { return BlockId{block}; }
  // Of the block in the shadows; none is 0.
  static ShadowId shadow(BlockNumber block) { return ShadowId{block} + 1; }

  void tell_shadows(size_t looked_up);
  void apply(const Duel::Change& change);
  size_t use_present();
  bool make_room();
  void insert(size_t position);

  const Trace& trace_;
  const size_t capacity_;
  Duel duel_;
  LeafLru leaves_;
  std::vector<Block> blocks_;
  size_t present_ = 0;
  uint32_t now_ = 0;
  SimulationReport report_;
  std::vector<BlockNumber> chain_;  // of the request
  std::vector<ShadowId> shadows_;   // of its prompt
};

// All of a trace. `proceed` is told the share that is done, now and then, and returns false to
// stop. Errors: kCancelled.
Result<SimulationReport> simulate(const Trace& trace, size_t capacity, EvictionPolicy policy,
                                  const std::function<bool(double)>& proceed = {});

}  // namespace ember::replay
