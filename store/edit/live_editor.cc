// Editing the store of a running cache.
#include "store/edit/live_editor.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "store/edit/parts_editor.h"
#include "store/live_view.h"

namespace ember {
namespace {

constexpr size_t kPageItems = 512;
constexpr std::chrono::milliseconds kWaitSlice{20};
const Error kEnding{ErrorCode::kCancelled, "cut short: the process that holds the store ends"};

class LiveEditor final : public PartsEditor {
 public:
  LiveEditor(BlockCache& cache, LiveEditorCalls calls, std::unique_ptr<StoreReader> reader)
      : PartsEditor(parts_of(cache.live_view())),
        cache_(cache),
        calls_(std::move(calls)),
        reader_(std::move(reader)) {}

  StoreReader& reader() override { return *reader_; }
  Status settle() override {
    return calls_.wait_for([this] { return cache_.sync(); });
  }

  Result<Erased> erase(std::span<const EraseItem> items, const OnProgress& on_progress) override {
    Erased erased;
    for (size_t from = 0; from < items.size(); from += kPageItems) {
      const auto page = items.subspan(from, std::min(kPageItems, items.size() - from));
      EMBER_TRY(calls_.wait_for([&] { return cache_.live_edits().erase(page, erased); }));
      const bool last = from + page.size() == items.size();
      if (!on_progress(from + page.size()) && !last) {
        EMBER_TRY(flush());
        return Error{ErrorCode::kCancelled, "stopped"};
      }
    }
    EMBER_TRY(flush());
    return erased;
  }

  Result<ForgetReport> forget(const ForgetRequest& request) override {
    EMBER_TRY(settle());
    const auto outcome = std::make_shared<std::promise<Result<ForgetReport>>>();
    std::future<Result<ForgetReport>> report = outcome->get_future();
    Status begun;
    EMBER_TRY(calls_.call([&] {
      begun = cache_.forget(request, [outcome](const Result<ForgetReport>& forgotten) {
        outcome->set_value(forgotten);
      });
    }));
    EMBER_TRY(begun);
    while (report.wait_for(kWaitSlice) != std::future_status::ready) {
      if (calls_.cancelled()) return kEnding;
    }
    return report.get();
  }

 protected:
  Status on_parts(HostTask work) override { return run_on_write_lane(cache_, calls_, work); }

  // As if the scrubber had found it.
  bool tell_cache(const BlockHash& hash) override {
    static_cast<void>(calls_.call([&] { cache_.live_edits().proven_wrong(hash); }));
    return true;
  }

 private:
  static StoreReaderParts parts_of(const LiveView& view) {
    const LiveView::Parts parts = view.parts();
    return {parts.directory, parts.disk, parts.conversations, parts.quarantine};
  }
  Status flush() {
    return calls_.wait_for([this] { return cache_.live_edits().flush(); });
  }

  BlockCache& cache_;
  const LiveEditorCalls calls_;
  const std::unique_ptr<StoreReader> reader_;
};

}  // namespace

Status run_on_write_lane(BlockCache& cache, const LiveEditorCalls& calls, const HostTask& work) {
  const auto ended = std::make_shared<std::promise<Status>>();
  std::future<Status> status = ended->get_future();
  EMBER_TRY(calls.call([&] {
    cache.live_edits().on_write_lane([ended, work]() -> Status {
      const Status done = work();
      ended->set_value(done);
      return done;
    });
  }));
  return status.get();
}

Result<std::unique_ptr<StoreEditor>> open_live_editor(BlockCache& cache, LiveEditorCalls calls) {
  EMBER_ASSIGN(std::unique_ptr<StoreReader> reader, open_live_store(cache, calls.call));
  return std::unique_ptr<StoreEditor>(
      std::make_unique<LiveEditor>(cache, std::move(calls), std::move(reader)));
}

}  // namespace ember
