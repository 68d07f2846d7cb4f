// World: thousands of requests over one cache, in a weather that a seed makes: conversations that
// go on and branch, refused and failing writes, damage, late copies, restarts and power cuts. The
// oracle knows what every latent must be, what was reported durable, and what may be counted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "tests/simulation/lying_device.h"
#include "tests/store/cache/cache_harness.h"

namespace ember::testing {

enum class DiskLie : uint8_t {
  kNone,
  kFlushNotMade,   // reports a flush that it did not make
  kWrongBytes,     // hands out other bytes than those it proved
};

struct WorldOptions {
  uint64_t seed = 1;
  uint64_t requests = 1000;  // to be finished
  bool faults = true;
  DeviceLie device_lie = DeviceLie::kNone;
  DiskLie disk_lie = DiskLie::kNone;
};

// What happened: a simulation in which nothing went wrong proves nothing.
struct WorldReport {
  uint64_t finished = 0;
  uint64_t cancelled = 0;
  uint64_t crowded_out = 0;  // found no device slots
  uint64_t restored_tokens = 0;
  uint64_t computed_tokens = 0;
  uint64_t refused_writes = 0;
  uint64_t failed_reads = 0;
  uint64_t failed_flushes = 0;
  uint64_t damaged = 0;
  uint64_t restarts = 0;
  uint64_t power_cuts = 0;
  uint64_t missed_deadlines = 0;  // chains that waited through a long pause
};

class World {
 public:
  explicit World(const WorldOptions& options);
  ~World();

  // Runs until the requests are finished; every rule is checked with EXPECT on the way.
  WorldReport run();

 private:
  struct Conversation {
    uint64_t id = 0;
    std::vector<TokenId> tokens;
  };
  struct Active {
    size_t conversation = 0;
    std::vector<TokenId> tokens;  // prompt and answer
    size_t prompt = 0;
    std::unique_ptr<Chain> chain;
    bool started = false;  // its restored rows were looked at
    uint64_t waited = 0;   // events since it was opened
  };

  void event();
  // Requests.
  void open_one();
  void advance_one();
  void start(Active& active);
  void compute_some(Active& active);
  void finish(size_t index);
  void drop(size_t index);
  // Weather and fate.
  void make_weather();
  void change_weather();
  void damage_one();
  void pass_time();
  void sync();
  void restart();
  void cut_power();
  // The oracle.
  void expect_all_durable(const std::set<BlockHash>& committed, uint64_t failures_before);
  void expect_accounts();
  void expect_no_leak();
  bool chance(uint64_t one_in) { return prng_.below(one_in) == 0; }

  WorldOptions options_;
  Prng prng_;
  Prng weather_prng_;  // its own: hooks are called whenever the device runs something
  ManualClock clock_;
  MemoryStore store_;
  std::unique_ptr<CacheHarness> harness_;
  std::vector<Conversation> conversations_;
  std::vector<Active> active_;
  uint64_t next_conversation_ = 0;
  uint64_t write_trouble_ = 0;  // one in so many writes is refused; 0: none
  uint64_t read_trouble_ = 0;
  uint64_t flush_trouble_ = 0;
  bool stopped_ = false;  // the power is off: nothing more reaches the disk
  WorldReport report_;
};

}  // namespace ember::testing
