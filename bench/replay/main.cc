// replay: what part of a trace's blocks a cache of a given size would have had.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/replay/replay.h"
#include "store/replay/public_trace.h"

namespace ember::replay {
namespace {

constexpr const char* kExamples = R"(Examples:
  replay --trace mooncake_conversation.jsonl.gz --capacity-percent 10
  replay --trace agent.jsonl.gz --starts agent_starts.csv --window 6h \
         --capacity-percent 1 --policy leaf_lru --json
  replay --trace mooncake_conversation.jsonl.gz --capacity-percent 10 \
         --disk /tmp/replay-store --payload-bytes 8192
The store under --disk must not exist; it is removed afterwards. The same trace is then replayed
with slots too, so that what dead bytes and epochs cost is told.)";

struct Arguments {
  TraceFiles files;
  double percent = 10;
  std::string policy = "auto";
  std::string disk;
  uint64_t payload_bytes = 8192;
  double restart_percent = 0;
  bool json = false;
};

nlohmann::json to_json(const Arguments& arguments, const Trace& trace, const ReplayReport& report) {
  return {{"trace", arguments.files.path},
          {"window", arguments.files.starts.empty() ? "" : arguments.files.window},
          {"policy", arguments.policy},
          {"block_tokens", trace.block_tokens},
          {"footprint_blocks", trace.blocks()},
          {"capacity_percent", arguments.percent},
          {"capacity_blocks", capacity_of(trace, arguments.percent)},
          {"requests", report.requests},
          {"references", report.references},
          {"hits", report.hits},
          {"hit_percent", report.hit_percent()},
          {"stranded", report.stranded},
          {"switches", report.switches},
          {"evicted_blocks", report.evicted_blocks},
          {"refused_requests", report.refused_requests},
          {"offload_failures", report.offload_failures},
          {"shadow_bytes", report.shadow_bytes},
          {"seconds", report.seconds},
          {"requests_per_second", static_cast<double>(report.requests) / report.seconds}};
}

void add_store(const Arguments& arguments, const ReplayReport& store, const ReplayReport& slots,
               nlohmann::json& out) {
  out["payload_bytes"] = arguments.payload_bytes;
  out["slots_hit_percent"] = slots.hit_percent();
  out["lost_points"] = slots.hit_percent() - store.hit_percent();
  out["accepted_bytes"] = store.accepted_bytes;
  out["written_bytes"] = store.written_bytes;
  out["write_amplification"] = store.write_amplification();
  out["most_disk_bytes"] = store.most_disk_bytes;
  out["disk_limit_bytes"] = store.disk_limit_bytes;
}

Result<nlohmann::json> run(const Arguments& arguments, EvictionPolicy policy) {
  EMBER_ASSIGN(const Trace trace, read_trace(arguments.files));
  ReplayOptions options;
  options.capacity_blocks = capacity_of(trace, arguments.percent);
  options.policy = policy;
  EMBER_ASSIGN(const ReplayReport slots, replay(trace, options));
  if (arguments.disk.empty()) return to_json(arguments, trace, slots);
  if (std::filesystem::exists(arguments.disk)) {
    return Error{ErrorCode::kInvalidArgument, "disk: " + arguments.disk + " exists already"};
  }
  options.directory = arguments.disk;
  options.payload_bytes = arguments.payload_bytes;
  const Result<ReplayReport> store = replay(trace, options);
  std::filesystem::remove_all(arguments.disk);
  if (!store.ok()) return store.error();
  nlohmann::json out = to_json(arguments, trace, *store);
  add_store(arguments, *store, slots, out);
  if (arguments.restart_percent == 0) return out;
  options.restart_at = arguments.restart_percent / 100;
  const Result<ReplayReport> restarted = replay(trace, options);
  std::filesystem::remove_all(arguments.disk);
  if (!restarted.ok()) return restarted.error();
  out["restart_at_percent"] = arguments.restart_percent;
  out["restarted_hit_percent"] = restarted->hit_percent();
  out["restarted_stranded"] = restarted->stranded;
  out["kept_of_hits_percent"] = 100 * restarted->hit_percent() / store->hit_percent();
  return out;
}

int print(const nlohmann::json& out, bool json) {
  if (json) {
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    for (const auto& [name, value] : out.items()) {
      std::printf("%-20s %s\n", name.c_str(), value.dump().c_str());
    }
  }
  return out["stranded"] == 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Replays a serving trace through the block cache and prints the hits.", "replay");
  app.footer(kExamples);
  app.add_option("--trace", arguments.files.path, "requests or sessions, JSON lines, gzip or plain")
      ->required();
  app.add_option("--starts", arguments.files.starts, "CSV of sessions' starts, for sessions");
  app.add_option("--window", arguments.files.window, "which starts: 24h or 6h");
  app.add_option("--capacity-percent", arguments.percent, "of the distinct blocks of the trace")
      ->check(CLI::PositiveNumber);
  app.add_option("--policy", arguments.policy, "auto, leaf_lru or s3_fifo");
  app.add_option("--disk", arguments.disk, "replay through a store of RocksDB in this new folder");
  app.add_option("--payload-bytes", arguments.payload_bytes, "raw bytes of a block in that store");
  app.add_option("--restart-at", arguments.restart_percent,
                 "per cent of the requests after which that store is closed and opened anew, in a "
                 "second run that is compared with the first")
      ->check(CLI::Range(0.0, 100.0));
  app.add_flag("--json", arguments.json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  const std::optional<EvictionPolicy> policy = eviction_policy_of(arguments.policy);
  if (!policy) {
    std::fprintf(stderr, "replay: policy: found %s, expected auto, leaf_lru or s3_fifo\n",
                 arguments.policy.c_str());
    return 2;
  }
  const Result<nlohmann::json> out = run(arguments, *policy);
  if (out.ok()) return print(*out, arguments.json);
  std::fprintf(stderr, "replay: %s\n", out.error().message.c_str());
  return 2;
}

}  // namespace
}  // namespace ember::replay

int main(int argc, char** argv) { return ember::replay::main_of(argc, argv); }
