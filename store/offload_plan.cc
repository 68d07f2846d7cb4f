// The offload queue's next step.
#include "store/offload_plan.h"

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

// The front of the queue that can be written now, without a gap.
size_t writable_front(const OffloadView& view) {
  size_t count = 0;
  for (const OffloadItem& item : view.items) {
    const bool waits = item.not_before_us > view.now_us && !view.closing;
    if (item.stage != OffloadStage::kHeld || !item.parent_stored || waits) break;
    if (++count == view.write_batch) break;
  }
  return count;
}

}  // namespace

OffloadStep plan_offload(const OffloadView& view) {
  OffloadStep step;
  size_t held = 0;
  for (const OffloadItem& item : view.items) {
    if (item.stage != OffloadStage::kQueued) ++held;
  }
  for (size_t i = 0; i < view.items.size(); ++i) {
    const OffloadItem& item = view.items[i];
    const bool idle = item.stage == OffloadStage::kQueued || item.stage == OffloadStage::kHeld;
    if (idle && !item.parent_stored) {
      step.drop.push_back(i);
    } else if (item.stage == OffloadStage::kQueued && held < view.host_slots) {
      step.copy.push_back(i);
      ++held;
    }
  }
  if (!view.lane_idle || !step.drop.empty()) return step;
  step.flush = flush_is_due(view);
  if (!step.flush) step.write = writable_front(view);
  return step;
}

}  // namespace ember
