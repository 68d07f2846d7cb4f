// Live view of a block cache: its ledger, pins and offload, a page at a time.
//
// Journey    block_ledger, offload_executor -> [live_view_impl] -> who inspects
// Threads    engine thread only, but for parts()
#pragma once

#include "store/cache/cache_context.h"
#include "store/cache/offload_executor.h"
#include "store/cache/store_parts.h"
#include "store/live_view.h"

namespace ember {

class LiveViewImpl final : public LiveView {
 public:
  LiveViewImpl(const CacheContext& context, const OffloadExecutor& offload,
               const StoreParts& parts)
      : context_(context), offload_(offload), parts_(parts) {}

  Parts parts() const override {
    return {parts_.directory.get(), parts_.disk.get(), parts_.conversations.get(),
            parts_.quarantine.get()};
  }
  std::vector<Place> places(std::span<const BlockHash> hashes) const override;
  UnstoredPage unstored(uint32_t from, uint32_t slots) const override;
  std::optional<Unstored> find_unstored(const BlockHash& hash) const override;
  Status read_unstored(const BlockHash& hash, uint32_t group, Bytes raw) const override;

 private:
  Place place_of(BlockId block) const;
  Unstored unstored_block(BlockId block) const;

  const CacheContext& context_;
  const OffloadExecutor& offload_;
  const StoreParts& parts_;
};

}  // namespace ember
