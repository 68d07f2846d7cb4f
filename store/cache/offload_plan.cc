// The offload queue's next step.
#include "store/cache/offload_plan.h"

#include <algorithm>

namespace ember {
namespace {

bool flush_is_due(const OffloadView& view) {
  if (view.unflushed == 0) return false;
  if (view.sync_waits) return true;
  if (view.now_us - view.oldest_unflushed_us >= view.flush_age_us) return true;
  if (!view.items.empty()) return false;
  if (view.closing) return true;
  return view.turn_ended_us >= 0 && view.now_us - view.turn_ended_us >= kIdleFlushUs;
}

bool waits(const OffloadItem& item, const OffloadView& view) {
  return item.not_before_us > view.now_us && !view.closing;
}

// Whether its parent is stored, or among the earlier items that `done` marks.
bool follows_parent(const OffloadItem& item, const std::vector<char>& done) {
  return item.parent_stored || (item.parent_item != kNoItem && done[item.parent_item] != 0);
}

bool has_no_parent(const OffloadItem& item) {
  return !item.parent_stored && item.parent_item == kNoItem;
}

// The items that are in host slots with all of their ancestors that are not stored. No other one
// can be written before something else comes down.
std::vector<size_t> all_down(const OffloadView& view) {
  std::vector<size_t> indices;
  std::vector<char> down(view.items.size(), 0);
  for (size_t i = 0; i < view.items.size(); ++i) {
    const OffloadItem& item = view.items[i];
    const bool held = item.stage != OffloadStage::kQueued && item.stage != OffloadStage::kCopying;
    if (!held || !follows_parent(item, down)) continue;
    down[i] = 1;
    indices.push_back(i);
  }
  return indices;
}

bool takes_memory(const OffloadItem& item) {
  return item.stage == OffloadStage::kCoding || item.stage == OffloadStage::kWriting ||
         (item.stage == OffloadStage::kHeld && item.coded);
}

// What can be coded now: of those that are down, as many as memory has room for. Payloads of
// children whose parent came down later would leave it none.
std::vector<size_t> codable(const OffloadView& view, std::vector<size_t> down) {
  const auto coded = static_cast<size_t>(
      std::count_if(view.items.begin(), view.items.end(), takes_memory));
  std::erase_if(down, [&](size_t index) {
    const OffloadItem& item = view.items[index];
    return item.stage != OffloadStage::kHeld || item.coded || waits(item, view);
  });
  const size_t room = view.coded_blocks - std::min(view.coded_blocks, coded);
  down.resize(std::min(down.size(), room));
  return down;
}

// What can be written now: each with a parent that is stored or goes before it.
std::vector<size_t> writable(const OffloadView& view) {
  std::vector<size_t> indices;
  std::vector<char> goes(view.items.size(), 0);
  for (size_t i = 0; i < view.items.size() && indices.size() < view.write_batch; ++i) {
    const OffloadItem& item = view.items[i];
    const bool ready = item.stage == OffloadStage::kHeld && item.coded && !waits(item, view);
    if (!ready || !follows_parent(item, goes)) continue;
    goes[i] = 1;
    indices.push_back(i);
  }
  return indices;
}

}  // namespace

OffloadStep plan_offload(const OffloadView& view) {
  OffloadStep step;
  const std::vector<size_t> down = all_down(view);
  size_t held = 0;
  bool on_its_way = !down.empty();
  for (const OffloadItem& item : view.items) {
    if (item.stage != OffloadStage::kQueued) ++held;
    if (item.stage == OffloadStage::kCopying) on_its_way = true;
  }
  for (size_t i = 0; i < view.items.size(); ++i) {
    const OffloadItem& item = view.items[i];
    const bool idle = item.stage == OffloadStage::kQueued || item.stage == OffloadStage::kHeld;
    if (idle && has_no_parent(item)) {
      step.drop.push_back(i);
    } else if (item.stage == OffloadStage::kQueued && (held < view.host_slots || !on_its_way)) {
      // The slots may be full of its descendants, which can only wait for it.
      step.must_copy = step.must_copy || !on_its_way;
      on_its_way = true;
      step.copy.push_back(i);
      ++held;
    }
  }
  if (!step.drop.empty()) return step;
  if (view.may_write) step.code = codable(view, down);
  if (!view.lane_idle) return step;
  step.flush = flush_is_due(view);
  if (!step.flush && view.may_write) step.write = writable(view);
  return step;
}

}  // namespace ember
