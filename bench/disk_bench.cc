// Disk bench: write amplification of the disk tier in three uses, and its speed beside the drive's.
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "bench/raw_drive.h"
#include "store/cache/retire_plan.h"
#include "store/disk_plan.h"
#include "store/disk_tier.h"

namespace ember {
namespace {

constexpr const char* kUsage =
    "disk_bench [--dir FOLDER] [--mib N] [--runs N] [--part PART] [--json]\n"
    "  --dir   where a scratch folder is made (default: the temporary folder)\n"
    "  --mib   data of one speed run, and the limit of the amplification runs (default 512)\n"
    "  --part  all, speed, amplification, or of the latter bulk, churn, tier, eviction or\n"
    "          interactive\n"
    "  --runs  of the drive and of the tier, in turns; medians are printed (default 3)\n"
    "Prints bytes written over payload accepted, and GB/s beside the raw drive's in the same run\n";

struct Options {
  std::string dir = std::filesystem::temp_directory_path();
  uint64_t bytes = uint64_t{512} << 20;
  int runs = 3;
  std::string part = "all";
  bool json = false;
};

constexpr int kReaders = 8;
constexpr uint64_t kDefaultStoreBytes = uint64_t{20} << 30;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

BlockHash hash_of(uint64_t id) {
  BlockHash hash;
  const uint64_t halves[2] = {mix64(id + 1), mix64(id + (uint64_t{1} << 40))};
  std::memcpy(hash.bytes.data(), halves, sizeof halves);
  return hash;
}

// Blocks of `groups` stored payloads: what no codec can make smaller, so that bytes are bytes. All
// share their payloads, under records of their own.
class Blocks {
 public:
  Blocks(uint32_t groups, uint32_t group_bytes) {
    Prng prng(5);
    record_.scope = "shared";
    record_.tokens.resize(64);
    for (uint32_t g = 0; g < groups; ++g) {
      std::vector<std::byte> raw(group_bytes);
      for (size_t i = 0; i + 8 <= raw.size(); i += 8) {
        const uint64_t bits = prng();
        std::memcpy(raw.data() + i, &bits, 8);
      }
      GroupEntry entry;
      entry.first_layer = g;
      entry.layers = 1;
      entry.raw_bytes = group_bytes;
      entry.stored_bytes = group_bytes;
      entry.codec = CodecId::kStored;
      entry.checksum = checksum64(raw);
      record_.groups.push_back(entry);
      payloads_.emplace_back(reinterpret_cast<const char*>(raw.data()), raw.size());
    }
  }
  uint64_t bytes() const { return record_.stored_bytes(); }

  // Makes room by `evict` (false: nothing may go) for as long as there is none.
  template <typename Evict>
  BlockRecord put(DiskTier& tier, uint64_t id, const Evict& evict) {
    BlockRecord record = record_;
    record.hash = hash_of(id);
    record.position = static_cast<uint32_t>(id);
    Status status = tier.put(record, payloads_);
    while (!status.ok()) {
      const ErrorCode code = status.error().code;
      EMBER_CHECK(code == ErrorCode::kCapacity || code == ErrorCode::kBusy, "put");
      if (code == ErrorCode::kCapacity) {
        EMBER_CHECK(evict(), "nothing may go");
        static_cast<void>(tier.make_room(bytes()));
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      status = tier.put(record, payloads_);
    }
    return record;
  }

 private:
  BlockRecord record_;
  std::vector<std::string> payloads_;
};

// `blocks_bytes`: the blocks' share of a store (store/disk_plan.h).
DiskTierOptions tier_options(const std::string& directory, uint64_t blocks_bytes) {
  DiskTierOptions options;
  options.directory = directory;
  options.ballast_bytes = plan_epochs(blocks_bytes).ballast_bytes;
  options.limit_bytes = blocks_bytes + options.ballast_bytes;
  options.memtable_bytes = uint64_t{256} << 20;
  options.block_cache_bytes = uint64_t{8} << 20;
  options.write_bytes_per_s = 0;
  return options;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    folder_ = options.dir + "/disk_bench-XXXXXX";
    EMBER_CHECK(::mkdtemp(folder_.data()) != nullptr, "a scratch folder below --dir");
  }
  ~Bench() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run() {
    const auto asked = [&](const char* part, const char* whole) {
      return options_.part == "all" || options_.part == whole || options_.part == part;
    };
    if (asked("bulk", "amplification")) bulk();
    if (asked("churn", "amplification")) churn(true);
    if (asked("tier", "amplification")) churn(false);
    if (asked("eviction", "amplification")) evicting_churn();
    if (asked("interactive", "amplification")) interactive();
    if (asked("speed", "speed")) {
      for (const uint32_t kib : {64u, 256u, 1024u}) speed(kib);
    }
    if (options_.json) std::printf("%s\n", report_.dump(2).c_str());
  }

 private:
  std::unique_ptr<DiskTier> open(uint64_t blocks_bytes) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_ + "/blocks" + std::to_string(next_folder_), ignored);
    const std::string directory = folder_ + "/blocks" + std::to_string(++next_folder_);
    Result<std::unique_ptr<DiskTier>> tier = DiskTier::open(tier_options(directory, blocks_bytes));
    EMBER_CHECK(tier.ok(), "the tier opens");
    return std::move(*tier);
  }

  void amplification(const char* use, const DiskTierStats& before, const DiskTierStats& after) {
    const auto accepted = static_cast<double>(after.accepted_bytes - before.accepted_bytes);
    const auto share = [&](uint64_t DiskTierStats::*bytes) {
      return static_cast<double>(after.*bytes - before.*bytes) / accepted;
    };
    const double written = share(&DiskTierStats::written_bytes);
    const double again = share(&DiskTierStats::rewritten_bytes);
    const double blobs = share(&DiskTierStats::written_blob_bytes);
    const double tables = share(&DiskTierStats::written_table_bytes);
    report_["write_amplification"][use] = {{"written_over_accepted", written},
                                           {"rewritten_over_accepted", again},
                                           {"frames_over_accepted", blobs - again - 1},
                                           {"tables_over_accepted", tables},
                                           {"other_over_accepted", written - blobs - tables},
                                           {"retired_epochs", after.retired_epochs},
                                           {"crowded_epochs", after.crowded_epochs},
                                           {"accepted_bytes", accepted}};
    if (options_.json) return;
    std::printf("write amplification, %-66s %.3f: put again %.3f, frames %.3f, tables %.3f, "
                "manifests and others %.3f; %s accepted\n",
                use, written, again, blobs - again - 1, tables, written - blobs - tables,
                human_bytes(static_cast<uint64_t>(accepted)).c_str());
    std::fflush(stdout);
  }

  // As the cache does: nothing goes while an epoch is two thirds dead. False: nothing may go.
  static bool erase_oldest(DiskTier& tier, std::deque<uint64_t>& resident, uint64_t portion,
                           uint64_t block_bytes) {
    while (tier.next_dead_share() < 2.0 / 3) {
      for (uint64_t freed = 0; freed < portion; freed += block_bytes) {
        if (resident.empty()) return false;
        EMBER_CHECK(tier.erase(hash_of(resident.front())).ok(), "erase");
        resident.pop_front();
      }
    }
    return true;
  }

  // A use takes seconds to tens of seconds: what is under way is said, and how long it took.
  void begin(const char* use) {
    std::fprintf(stderr, "%.1f s: %s\n", seconds_since(start_), use);
  }

  // 16 to an epoch whatever the share (20 GiB: 150 MiB and about 120 of V2-Lite's blocks): with one
  // or two there would be nothing to put again.
  Blocks sixteenths() const {
    return Blocks(4, static_cast<uint32_t>(plan_epochs(options_.bytes).epoch_bytes / 64 - 64));
  }

  // Twice the share, the oldest out first.
  void bulk() {
    begin("bulk");
    auto tier = open(options_.bytes);
    Blocks blocks = sixteenths();
    std::deque<uint64_t> resident;
    const DiskTierStats before = tier->stats();
    for (uint64_t id = 0; id * blocks.bytes() < 2 * options_.bytes; ++id) {
      blocks.put(*tier, id, [&] {
        return erase_oldest(*tier, resident, options_.bytes / 128, blocks.bytes());
      });
      resident.push_back(id);
    }
    EMBER_CHECK(tier->flush().ok(), "flush");
    amplification("bulk, oldest first", before, tier->stats());
  }

  // Blocks on the disk, of which with each put a random one is used: what is cold lies anywhere.
  class Used {
   public:
    size_t size() const { return ids_.size(); }
    uint64_t given_up() const { return given_up_; }
    void add(uint64_t id, Prng& prng) {
      ids_.push_back(id);
      last_use_[hash_of(id)] = ++uses_;
      last_use_[hash_of(ids_[prng.below(ids_.size())])] = ++uses_;
    }
    void erase_random(DiskTier& tier, Prng& prng) {
      const size_t victim = prng.below(ids_.size());
      EMBER_CHECK(tier.erase(hash_of(ids_[victim])).ok(), "erase");
      last_use_.erase(hash_of(ids_[victim]));
      ids_[victim] = ids_.back();
      ids_.pop_back();
    }
    // By the cache's own plan. False: no epoch may go.
    bool give_up_coldest(DiskTier& tier) {
      std::vector<EpochView> views;
      for (const DiskTier::EpochSample& sample : tier.sample_epochs(256, 32)) {
        EpochView& view = views.emplace_back();
        view.epoch = sample.epoch;
        view.bytes = sample.bytes;
        view.live_bytes = sample.live_bytes;
        for (const BlockHash& hash : sample.live) view.sample.push_back(order_of(hash));
      }
      const std::optional<RetireChoice> choice = choose_epoch(views);
      if (!choice) return false;
      const EpochView& epoch = views[choice->index];
      const std::vector<DiskTier::LiveBlock> live = tier.live_blocks(epoch.epoch);
      std::vector<EpochBlock> blocks;
      for (const auto& block : live) blocks.push_back({block.stored_bytes, order_of(block.hash)});
      const GiveUp plan = plan_give_up(blocks, epoch.bytes, choice->cold);
      uint64_t bytes = 0;
      for (size_t i = 0; i < plan.order.size() && (i < plan.cold || bytes < plan.bytes); ++i) {
        const DiskTier::LiveBlock& block = live[plan.order[i]];
        EMBER_CHECK(tier.erase(block.hash).ok(), "erase");
        last_use_.erase(block.hash);
        bytes += block.stored_bytes;
        ++given_up_;
      }
      std::erase_if(ids_, [&](uint64_t id) { return !last_use_.contains(hash_of(id)); });
      return true;
    }

   private:
    EvictionOrder order_of(const BlockHash& hash) const {
      return {EvictionRank::kHeld, last_use_.at(hash)};
    }
    std::vector<uint64_t> ids_;
    std::unordered_map<BlockHash, uint64_t> last_use_;
    uint64_t uses_ = 0;
    uint64_t given_up_ = 0;
  };

  // 70 % of the share, then as much again, each block in the place of a random one; twice as much
  // once more. `give_up`: as the cache does it, the coldest blocks of an epoch that has to go are
  // not put again, and as many more come in their place, so that 70 % stay live.
  void churn(bool give_up) {
    begin("random churn");
    auto tier = open(options_.bytes);
    Blocks blocks = sixteenths();
    Used used;
    Prng prng(11);
    const auto evict = [&] { return !give_up || used.give_up_coldest(*tier); };
    uint64_t id = 0;
    for (; (id + 1) * blocks.bytes() < options_.bytes / 10 * 7; ++id) {
      blocks.put(*tier, id, [] { return false; });
      used.add(id, prng);
    }
    EMBER_CHECK(tier->flush().ok(), "flush");
    const size_t live = used.size();
    for (const uint64_t turns : {1u, 2u}) {
      const DiskTierStats before = tier->stats();
      const uint64_t given_up_before = used.given_up();
      size_t least = live;
      for (uint64_t i = 0; i < turns * live; ++i, ++id) {
        while (used.size() >= live) used.erase_random(*tier, prng);
        blocks.put(*tier, id, evict);
        used.add(id, prng);
        least = std::min(least, used.size());
      }
      EMBER_CHECK(tier->flush().ok(), "flush");
      const auto share = [](uint64_t part, uint64_t whole) {
        return std::to_string(static_cast<double>(part) / static_cast<double>(whole)).substr(0, 5);
      };
      std::string use = "random churn at " + share(least, live * 10 / 7) + " to 0.7 live, turn";
      use += turns == 1 ? " 1" : "s 2 and 3";
      if (give_up) use += ", given up " + share(used.given_up() - given_up_before, turns * live);
      amplification(use.c_str(), before, tier->stats());
    }
  }

  // Nothing goes but by the cache's plan. Begins full.
  void evicting_churn() {
    begin("random uses, the cache's victims");
    auto tier = open(options_.bytes);
    Blocks blocks = sixteenths();
    Used used;
    Prng prng(12);
    const uint64_t share = options_.bytes / blocks.bytes();
    DiskTierStats before;
    double live = 0;
    for (uint64_t id = 0; id < 3 * share; ++id) {
      if (id == share) before = tier->stats();  // the first share fills it
      blocks.put(*tier, id, [&] { return used.give_up_coldest(*tier); });
      used.add(id, prng);
      if (id >= share) live += static_cast<double>(used.size());
    }
    EMBER_CHECK(tier->flush().ok(), "flush");
    live /= 2 * static_cast<double>(share * share);  // the mean
    const std::string use = "random uses, the cache's victims, " +
                            std::to_string(static_cast<int>(live * 100)) + " % live";
    amplification(use.c_str(), before, tier->stats());
  }

  // Turns of 100 tokens, each flushed (they are 10 s apart, so that nothing joins two of them),
  // and what can wait for a quiet moment done between them. A small model's
  // blocks, 12 to an epoch.
  void interactive() {
    begin("interactive");
    const uint64_t share = std::min(options_.bytes, uint64_t{128} << 20);
    auto tier = open(share);
    Blocks blocks(7, 12u << 10);
    std::deque<uint64_t> resident;
    const DiskTierStats before = tier->stats();
    uint64_t tokens = 0;
    for (uint64_t id = 0; id * blocks.bytes() < share / 2 * 3;) {
      tokens += 100;
      for (; (id + 1) * 64 <= tokens; ++id) {
        blocks.put(*tier, id, [&] {
          return erase_oldest(*tier, resident, share / 128, blocks.bytes());
        });
        resident.push_back(id);
      }
      EMBER_CHECK(tier->flush().ok(), "flush");
      for (bool more = true; more;) {
        const Result<bool> kept = tier->upkeep();
        more = kept.ok() && *kept;
      }
    }
    amplification("interactive, 100-token turns", before, tier->stats());
  }

  struct Speeds {
    std::vector<double> raw_write, write, raw_read, read;
  };

  void speed(uint32_t kib) {
    Result<std::unique_ptr<RawDrive>> drive = RawDrive::open(folder_, options_.bytes);
    EMBER_CHECK(drive.ok(), "a file for the raw drive");
    Speeds speeds;
    for (int run = 0; run < options_.runs; ++run) {
      const auto seed = static_cast<uint64_t>(run) * 100 + kib;
      speeds.raw_write.push_back((*drive)->write().value());
      auto tier = open(std::max(3 * options_.bytes, kDefaultStoreBytes));
      Blocks blocks(std::max(1u, 1024u / kib), kib << 10);
      std::vector<BlockRecord> records;
      const auto start = std::chrono::steady_clock::now();
      for (uint64_t id = 0; id * blocks.bytes() < options_.bytes; ++id) {
        records.push_back(blocks.put(*tier, id, [] { return false; }));
      }
      EMBER_CHECK(tier->flush().ok(), "flush");
      speeds.write.push_back(static_cast<double>(records.size() * blocks.bytes()) /
                             seconds_since(start));
      speeds.raw_read.push_back((*drive)->read(size_t{kib} << 10, kReaders, seed).value());
      speeds.read.push_back(read_all(*tier, records, seed));
    }
    print_speed(kib, (*drive)->direct(), speeds);
  }

  // Each group once, in random order, by as many threads as the device's read lane has.
  static double read_all(DiskTier& tier, const std::vector<BlockRecord>& records, uint64_t seed) {
    std::vector<std::pair<uint32_t, uint32_t>> order;
    for (uint32_t i = 0; i < records.size(); ++i) {
      for (uint32_t g = 0; g < records[i].groups.size(); ++g) order.emplace_back(i, g);
    }
    Prng prng(seed);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng.below(i)]);
    std::atomic<size_t> next = 0;
    std::atomic<uint64_t> bytes = 0;
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::jthread> readers;
    for (int t = 0; t < kReaders; ++t) {
      readers.emplace_back([&] {
        std::vector<std::byte> raw;
        for (size_t at = next++; at < order.size(); at = next++) {
          const auto [block, group] = order[at];
          raw.resize(records[block].groups[group].raw_bytes);
          EMBER_CHECK(tier.read_group(records[block], group, raw).ok(), "read");
          bytes += raw.size();
        }
      });
    }
    readers.clear();
    return static_cast<double>(bytes) / seconds_since(start);
  }

  void print_speed(uint32_t kib, bool direct, const Speeds& speeds) {
    const double raw_write = median(speeds.raw_write), write = median(speeds.write);
    const double raw_read = median(speeds.raw_read), read = median(speeds.read);
    report_["speed"].push_back({{"value_kib", kib},
                                {"direct_io", direct},
                                {"raw_write_bytes_per_s", raw_write},
                                {"write_bytes_per_s", write},
                                {"write_share", write / raw_write},
                                {"raw_read_bytes_per_s", raw_read},
                                {"read_bytes_per_s", read},
                                {"read_share", read / raw_read}});
    if (options_.json) return;
    std::printf("values of %4u KiB: write %.2f of %.2f GB/s (%.0f %%), read %.2f of %.2f GB/s "
                "(%.0f %%)%s\n",
                kib, write / 1e9, raw_write / 1e9, 100 * write / raw_write, read / 1e9,
                raw_read / 1e9, 100 * read / raw_read, direct ? "" : ", through the page cache");
    std::fflush(stdout);
  }

  Options options_;
  std::string folder_;
  int next_folder_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  nlohmann::json report_;
};

int main_of(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& flag = arguments[i];
    if (flag == "--json") {
      options.json = true;
    } else if (flag != "--help" && i + 1 < arguments.size()) {
      const std::string& value = arguments[++i];
      if (flag == "--dir") options.dir = value;
      if (flag == "--mib") options.bytes = std::strtoull(value.c_str(), nullptr, 10) << 20;
      if (flag == "--runs") options.runs = std::max(1, std::atoi(value.c_str()));
      if (flag == "--part") options.part = value;
    } else {
      std::fputs(kUsage, flag == "--help" ? stdout : stderr);
      return flag == "--help" ? 0 : 2;
    }
  }
  if (options.bytes < (uint64_t{64} << 20)) {
    std::fputs("--mib: expected at least 64\n", stderr);
    return 2;
  }
  Bench(options).run();
  return 0;
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) { return ember::main_of({argv + 1, argv + argc}); }
