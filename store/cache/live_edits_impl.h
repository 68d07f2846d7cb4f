// Live edits of a block cache: its ledger first, then the store by tasks of the write lane.
//
// Journey    store_editor -> [live_edits_impl] -> block_ledger, tail_ledger; disk_tier
// Threads    engine thread only
#pragma once

#include "store/cache/cache_context.h"
#include "store/cache/offload_executor.h"
#include "store/live_edits.h"
#include "store/record_intake.h"

namespace ember {

class LiveEditsImpl final : public LiveEdits {
 public:
  LiveEditsImpl(CacheContext& context, OffloadExecutor& offload)
      : context_(context), offload_(offload) {}

  Ticket erase(std::span<const EraseItem> items, Erased& erased) override;
  void proven_wrong(const BlockHash& hash) override;
  Ticket take_in(std::shared_ptr<IncomingBatch> batch) override;
  void on_write_lane(HostTask work) override;
  Ticket flush() override;

 private:
  Status check_writable() const;
  bool forget(const EraseItem& item, Erased& erased);
  // live_intake.cc
  bool is_ours(const BlockRecord& record) const;
  Status look_at(IncomingBatch& batch, std::vector<BlockId>& held);
  void enter(IncomingBlock& incoming);
  void enter_foreign(const IncomingBlock& incoming);
  // A ticket for whoever asked, beside ours.
  Ticket run(HostTask work, TicketRouter::Then then);

  CacheContext& context_;
  OffloadExecutor& offload_;
};

}  // namespace ember
