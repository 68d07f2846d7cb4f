// Warm-up: after a restart, brings blocks that were used lately from the disk into free host slots.
//
// Journey    access_log, disk_tier -> [warm_up] -> host_tier
// Owns       the plan of what comes up, and the reads of it under way
// Invariant  at most its rate of bytes a second; takes free host slots alone, and not the last of
//            them, so nothing leaves for it; no read begins beside restores or offload, nor for
//            some time after; a block is published only when its bytes are proven
// Threads    engine thread only; the plan and the reads are host tasks of the read lane
// Not here   which blocks (store/cache/warm_up_plan.h), one read (store/cache/host_read.h),
//            requests' own restores (restore_executor.h)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/cache/cache_context.h"

namespace ember {

class WarmUp {
 public:
  explicit WarmUp(CacheContext& context) : context_(context) {}
  WarmUp(const WarmUp&) = delete;
  WarmUp& operator=(const WarmUp&) = delete;
  ~WarmUp();

  // Reads the log of the store in this folder, and begins when the cache has loaded. `planned` is
  // called when the log is not needed any more.
  void begin(const std::string& store, uint64_t bytes_per_second, std::function<void()> planned);
  // Starts a read if one is due. `working`: not now. To be called after anything.
  void advance(bool working);
  // A request wants the disk: no further read for some time.
  void yield() { quiet_from_us_ = context_.clock.now_us() + kQuietUs; }
  // No more reads.
  void stop();
  bool reading() const { return reads_under_way_ > 0; }

  void add_to(BlockCacheStats& stats) const;

 private:
  static constexpr int64_t kQuietUs = 250'000;
  static constexpr uint32_t kReadsAtOnce = 2;
  static constexpr uint32_t kSpareShare = 8;  // of the host slots, one in so many is left free

  bool due(int64_t now_us);
  void start_reads();
  void start_read(BlockId block, SlotLease slot);

  CacheContext& context_;
  uint64_t rate_ = 0;  // 0: over, or never begun
  bool planned_ = false;
  std::vector<BlockHash> blocks_;  // in order
  size_t next_ = 0;
  int64_t allowance_ = 0;  // bytes that may be read now; a large block leaves a debt
  int64_t allowed_until_us_ = 0;
  int64_t quiet_from_us_ = 0;
  uint32_t reads_under_way_ = 0;
  uint64_t warmed_blocks_ = 0;
  uint64_t warmed_bytes_ = 0;
};

}  // namespace ember
