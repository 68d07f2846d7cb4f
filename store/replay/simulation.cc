// One tier over numbers: the product's shadows and its order of leaves, without index and tokens.
#include "store/replay/simulation.h"

#include <algorithm>

#include "base/check.h"

namespace ember::replay {
namespace {

constexpr size_t kTellEvery = 256;  // requests

}  // namespace

Simulation::Simulation(const Trace& trace, size_t capacity, EvictionPolicy policy)
    : trace_(trace), capacity_(capacity), duel_(policy, capacity), blocks_(trace.blocks()) {
  EMBER_CHECK(trace.requests.size() < UINT32_MAX, "a request has a number");
  if (policy == EvictionPolicy::kLeafLru) return;
  leaves_.set_rank_source([this](BlockId block) {
    return duel_.holds(shadow(static_cast<BlockNumber>(block))) ? EvictionRank::kHeld
                                                                : EvictionRank::kUnheld;
  });
}

void Simulation::apply(const Duel::Change& change) {
  if (change.leader_changed) {
    leaves_.rerank_all();
    return;
  }
  for (const ShadowId changed : change.ids) {
    leaves_.rerank(id(static_cast<BlockNumber>(changed - 1)));
  }
}

// The prompt as a request, what it computed beyond as an extension of it.
void Simulation::tell_shadows(size_t looked_up) {
  if (duel_.policy() == EvictionPolicy::kLeafLru) return;
  shadows_.clear();
  for (size_t i = 0; i < looked_up; ++i) shadows_.push_back(shadow(chain_[i]));
  if (!shadows_.empty()) apply(duel_.request(shadows_));
  for (size_t i = looked_up; i < chain_.size(); ++i) {
    const ShadowId block = shadow(chain_[i]);
    apply(i == 0 ? duel_.request(std::span(&block, 1))
                 : duel_.extend(shadow(chain_[i - 1]), block));
  }
}

// How many of the chain's blocks are there. Only the last of them can be a leaf.
size_t Simulation::use_present() {
  size_t present = 0;
  while (present < chain_.size() && blocks_[chain_[present]].last_use != 0) {
    const BlockNumber number = chain_[present++];
    Block& block = blocks_[number];
    const bool leaf = block.children == 0;
    if (leaf) leaves_.remove(block.last_use, id(number));
    block.last_use = now_;
    if (leaf) leaves_.add(now_, id(number));
  }
  return present;
}

bool Simulation::make_room() {
  if (present_ < capacity_) return true;
  const std::optional<BlockId> oldest = leaves_.oldest([this](BlockId candidate) {
    return blocks_[static_cast<BlockNumber>(candidate)].last_use != now_;
  });
  if (!oldest) return false;
  const auto victim = static_cast<BlockNumber>(*oldest);
  leaves_.remove(blocks_[victim].last_use, *oldest);
  blocks_[victim].last_use = 0;
  --present_;
  ++report_.evicted;
  const BlockNumber before = trace_.before[victim];
  if (before == kNoBlockNumber) return true;
  if (--blocks_[before].children == 0) leaves_.add(blocks_[before].last_use, id(before));
  return true;
}

void Simulation::insert(size_t position) {
  const BlockNumber number = chain_[position];
  blocks_[number] = {now_, 0};
  ++present_;
  ++report_.inserted;
  if (position == 0) return;
  const BlockNumber before = chain_[position - 1];
  if (blocks_[before].children++ > 0) return;
  if (leaves_.contains(now_, id(before))) leaves_.remove(now_, id(before));
}

void Simulation::request(const Request& request) {
  ++now_;
  trace_.chain(request, chain_);
  tell_shadows(request.looked_up);
  const size_t present = use_present();
  report_.hits += std::min<size_t>(present, request.looked_up);
  size_t end = present;
  for (; end < chain_.size() && make_room(); ++end) insert(end);
  // Of those that came, the others have a child; and none could have been a victim.
  if (end > present) leaves_.add(now_, id(chain_[end - 1]));
}

SimulationReport Simulation::report() const {
  SimulationReport report = report_;
  report.switches = duel_.switches();
  return report;
}

size_t Simulation::memory_bytes() const {
  return duel_.memory_bytes() + leaves_.memory_bytes() + blocks_.capacity() * sizeof(Block);
}

Result<SimulationReport> simulate(const Trace& trace, size_t capacity, EvictionPolicy policy,
                                  const std::function<bool(double)>& proceed) {
  Simulation simulation(trace, capacity, policy);
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(trace.requests.size());
    if (proceed && i % kTellEvery == 0 && !proceed(done)) {
      return Error{ErrorCode::kCancelled, "the simulation was cut short"};
    }
    simulation.request(trace.requests[i]);
  }
  return simulation.report();
}

}  // namespace ember::replay
