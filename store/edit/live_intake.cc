// Batches of records for the engine thread and the write lane of a running cache.
#include "store/edit/live_intake.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "store/disk_plan.h"
#include "store/live_view.h"

namespace ember {
namespace {

// One turn of the write lane: some ten milliseconds.
constexpr size_t kMostBlocks = 32;
constexpr uint64_t kMostBytes = uint64_t{8} << 20;
constexpr int64_t kBusyPatienceUs = 30'000'000;
constexpr std::chrono::milliseconds kBusyPause{50};
const Error kEnding{ErrorCode::kCancelled, "cut short: the process that holds the store ends"};

class LiveIntake final : public RecordIntake {
 public:
  LiveIntake(BlockCache& cache, const LiveView::Parts& parts, uint64_t namespaces_bytes,
             LiveEditorCalls calls, std::function<bool(const std::string&)> is_open)
      : cache_(cache),
        parts_(parts),
        namespaces_bytes_(namespaces_bytes),
        calls_(std::move(calls)),
        is_open_(std::move(is_open)) {}

  const HashSecret& secret() const override { return parts_.directory->secret(); }

  // In slices, since the offload waits meanwhile.
  Status reserve(uint64_t stored_bytes) override {
    bool more = true;
    while (more) {
      EMBER_TRY(run_on_write_lane(cache_, calls_, [this, stored_bytes, &more]() -> Status {
        EMBER_ASSIGN(more, parts_.disk->make_room_slice(stored_bytes));
        return {};
      }));
      if (calls_.cancelled()) return kEnding;
    }
    return {};
  }

  Status put_namespace(const NamespaceHash& name, const NamespaceEntry& entry) override {
    return write_namespace_note(parts_.directory->path(), name, entry, namespaces_bytes_);
  }

  Status put_block(BlockRecord record, std::vector<std::string> payloads) override {
    batch_bytes_ += record.stored_bytes();
    batch_->blocks.push_back({std::move(record), std::move(payloads), false});
    const bool full = batch_->blocks.size() >= kMostBlocks || batch_bytes_ >= kMostBytes;
    return full ? take_batch() : Status();
  }

  Status put_conversation(const Conversation& conversation, uint32_t first_turn) override {
    EMBER_TRY(take_batch());
    if (is_open_ && is_open_(conversation.id)) {
      return {ErrorCode::kBusy, "conversation " + conversation.id + " is open in a terminal"};
    }
    Conversations& turns = *parts_.conversations;
    return run_on_write_lane(cache_, calls_, [&]() -> Status {
      EMBER_TRY(turns.put_head(conversation));
      for (uint32_t i = first_turn; i < conversation.turns.size(); ++i) {
        EMBER_TRY(turns.put_turn(conversation.id, i, conversation.turns[i]));
      }
      return {};
    });
  }

  Status finish() override {
    EMBER_TRY(take_batch());
    return calls_.wait_for([this] { return cache_.live_edits().flush(); });
  }

  const Taken& taken() const override { return taken_; }

 private:
  // What the batch waits for is on its way; where that lasts too long, it does not come.
  Status take_batch() {
    const int64_t until_us = system_clock().now_us() + kBusyPatienceUs;
    while (!batch_->blocks.empty()) {
      const Status took =
          calls_.wait_for([this] { return cache_.live_edits().take_in(batch_); });
      count_entered();
      if (took.ok()) break;
      const bool patient = took.error().code == ErrorCode::kBusy && !calls_.cancelled() &&
                           system_clock().now_us() < until_us;
      if (!patient) return took;
      static_cast<void>(calls_.wait_for([this] { return cache_.sync(); }));
      std::this_thread::sleep_for(kBusyPause);
    }
    batch_ = std::make_shared<IncomingBatch>();
    batch_bytes_ = 0;
    return {};
  }

  void count_entered() {
    auto& blocks = batch_->blocks;
    for (size_t i = 0; i < batch_->written; ++i) {
      (blocks[i].known ? taken_.known : taken_.fresh).add(blocks[i].record);
    }
    blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(batch_->written));
    batch_->written = batch_->entered = 0;
  }

  BlockCache& cache_;
  const LiveView::Parts parts_;
  const uint64_t namespaces_bytes_;
  const LiveEditorCalls calls_;
  const std::function<bool(const std::string&)> is_open_;
  std::shared_ptr<IncomingBatch> batch_ = std::make_shared<IncomingBatch>();
  uint64_t batch_bytes_ = 0;
  Taken taken_;
};

}  // namespace

Result<std::unique_ptr<RecordIntake>> open_live_intake(
    BlockCache& cache, LiveEditorCalls calls,
    std::function<bool(const std::string& conversation)> is_open) {
  const LiveView::Parts parts = cache.live_view().parts();
  if (parts.directory == nullptr || parts.disk == nullptr || parts.conversations == nullptr) {
    return Error{ErrorCode::kIo, "the store is in use without its blocks or conversations"};
  }
  // What runs now comes down first, so that a block of it is not known in RAM alone.
  EMBER_TRY(calls.wait_for([&cache] { return cache.sync(); }));
  uint64_t disk_bytes = 0;
  EMBER_TRY(calls.call([&] { disk_bytes = cache.stats().disk_limit_bytes; }));
  EMBER_ASSIGN(const DiskPlan plan, plan_disk(disk_bytes));
  return std::unique_ptr<RecordIntake>(std::make_unique<LiveIntake>(
      cache, parts, plan.namespaces_bytes, std::move(calls), std::move(is_open)));
}

}  // namespace ember
