// Cache harness: the engine's part, played by an oracle: the latents of a token are a pure function
// of the tokens up to it, so every restored row can be checked, whatever way it took.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kernels/device.h"
#include "store/cache/block_cache_impl.h"
#include "tests/store/cache/memory_store.h"

namespace ember::testing {

struct HarnessOptions {
  uint64_t sim_seed = 1;          // 0: the CPU device
  uint32_t layers = 3;
  uint32_t layers_per_group = 1;
  uint32_t span = 64;
  uint32_t device_slots = 32;
  uint32_t host_slots = 16;
  uint64_t numerics_build = 7;
  uint8_t name_space = 1;
  bool store = true;
  bool writable = true;
  CacheTuning tuning = {};
  ManualClock* clock = nullptr;   // null: the system's
  std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)> wrap_device = {};
  std::string path = {};          // not empty: a real store there
  uint64_t disk_bytes = 64u << 20;
  uint64_t access_log_bytes = 0;
  uint64_t warm_up_bytes_per_second = 0;
  TenantPolicy tenants = {};
  uint64_t scrub_bytes_per_second = 0;
  std::string quarantine = {};  // its folder; a real store has its own
  std::function<StoreParts()> parts = {};  // set: the store as the test has opened it
  uint64_t blocks_bytes = 0;      // not 0: less than a plan would give, for churn with few blocks
  BaseFileSystem base = nullptr;  // below a real store
  // Put around the disk that is opened.
  std::function<std::unique_ptr<DiskTier>(std::unique_ptr<DiskTier>)> around_disk = nullptr;
  bool may_fail_to_open = false;  // the power may go while it opens
  std::function<void()> after_step = [] {};
  std::function<bool()> cut_off = [] { return false; };  // then nothing is waited for any more
  uint64_t index_bytes = 0;    // shares of RAM; 0: no limit
  uint64_t staging_bytes = 0;
  uint64_t write_bytes_per_day = 0;
  int64_t max_age_us = 0;
  EncryptionOptions encryption = {};
};

class CacheHarness {
 public:
  CacheHarness(HarnessOptions options, MemoryStore& store);
  ~CacheHarness();

  // Opens the cache anew, as another process would: only the store is left.
  void reopen();
  void close();
  bool is_open() const { return cache_ != nullptr; }

  struct Outcome {
    bool opened = false;
    size_t matched = 0;
    size_t restored = 0;
    RestoreReport report;
  };
  // A request over `tokens`: restores what is known, checks it, computes the rest, checks all.
  Outcome feed(const std::vector<TokenId>& tokens, bool tail = true, bool use_cache = true,
               const RequestScope& scope = {});

  // The parts of a request, for tests that mix several.
  std::unique_ptr<Chain> open_chain(const std::vector<TokenId>& tokens, size_t restore_tokens,
                                    const RequestScope& scope = {});
  void wait_ready(const Chain& chain);
  void compute(Chain& chain, const std::vector<TokenId>& tokens);
  void expect_rows(const Chain& chain, const std::vector<TokenId>& tokens, size_t count);

  // Lets one completion (or none) happen.
  void step();
  void drain();  // until nothing is under way
  const Status& sync_status() const { return awaited_status_; }  // of the last one
  void sync() { static_cast<void>(try_sync({})); }  // until everything is durable
  // Until everything is durable or has failed for good; now and then `meanwhile` is called.
  Status try_sync(const std::function<void()>& meanwhile);
  Status snapshot(const std::string& target);
  Status sync_for(std::string_view tenant);
  // Until the ticket has completed; now and then `meanwhile` is called.
  Status await(Ticket ticket, const std::function<void()>& meanwhile = {});
  // Aborts or fails unless index, slots and stored order are as promised.
  void expect_sound();

  BlockCacheImpl& cache() { return *cache_; }
  Device& device() { return *device_; }

  static std::vector<TokenId> tokens(uint64_t seed, size_t count);
  BlockHash hash_of(const std::vector<TokenId>& tokens, size_t position) const;

 private:
  std::byte* row(const Chain& chain, size_t token, uint32_t layer);
  std::vector<std::byte> oracle_row(uint64_t prefix, uint32_t layer) const;

  HarnessOptions options_;
  MemoryStore& store_;
  std::unique_ptr<Device> device_;
  KvLayout layout_;
  std::unique_ptr<BlockCacheImpl> cache_;
  Ticket awaited_;
  bool awaited_done_ = false;
  Status awaited_status_;
};

}  // namespace ember::testing
