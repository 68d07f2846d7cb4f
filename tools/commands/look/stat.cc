// stat: counts records, tails, conversations and bytes of a store.
#include "tools/commands/look/stat.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "store/access_log.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/simulate_plan.h"
#include "tools/commands/messages.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

// Requests of the access log that ended within a time before now.
struct Window {
  const char* name;
  int64_t us = 0;
  uint64_t requests = 0;
  uint64_t tokens = 0;  // of prompts and answers
  std::array<uint64_t, kTierCount> restored{};
  uint64_t all_restored() const { return std::accumulate(restored.begin(), restored.end(), 0ull); }
};
constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;

struct StoreSummary {
  StoreFacts facts;
  bool brief = false;  // without what a walk over all records tells
  std::optional<StoreLimits> limits;
  std::optional<SchedulerLoad> load;
  std::vector<Window> windows;  // none: the store keeps no access log
  std::optional<BlockCacheStats> live;
  uint64_t blocks = 0;
  uint64_t tails = 0;
  uint64_t tokens = 0;
  uint64_t hits = 0;
  uint64_t holes = 0;
  uint64_t namespaces = 0;
  uint64_t conversations = 0;
  uint64_t epochs = 0;
  uint64_t raw_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t disk_bytes = 0;
  uint64_t blocks_bytes = 0;
  uint64_t conversations_bytes = 0;
  uint64_t ballast_bytes = 0;  // kept for the day the drive is full
  uint64_t unreadable_records = 0;
  uint64_t quarantined = 0;
  uint64_t quarantine_bytes = 0;

  // Records or rows are hidden by damage (the tier's own words).
  bool is_damaged() const {
    return unreadable_records > 0 || facts.health.find("unreadable") != std::string::npos;
  }
  double ratio() const {
    return stored_bytes == 0 ? 0
                             : static_cast<double>(raw_bytes) / static_cast<double>(stored_bytes);
  }
};

// The log is a ring, and off by default: it tells of what it still holds.
Result<std::vector<Window>> read_windows(const std::string& store) {
  std::vector<Window> windows = {
      {"last hour", kHourUs}, {"last day", 24 * kHourUs}, {"last week", 7 * 24 * kHourUs}};
  const int64_t now_us = system_clock().unix_us();
  bool any = false;
  EMBER_TRY(visit_access_log(store, [&](const AccessEntry& entry) {
    any = true;
    for (Window& window : windows) {
      if (now_us - entry.unix_us > window.us) continue;
      ++window.requests;
      window.tokens += entry.tokens;
      for (size_t i = 0; i < kTierCount; ++i) window.restored[i] += entry.restored_tokens[i];
    }
  }));
  if (!any) windows.clear();
  return windows;
}

Status count_records(StoreReader& reader, const CommandIo& io, StoreSummary& summary) {
  std::set<NamespaceHash> namespaces;
  const auto count = [&](const BlockSight& sight) {
    namespaces.insert(sight.record.name_space);
    summary.tokens += sight.record.tokens.size();
    summary.raw_bytes += sight.record.raw_bytes();
    summary.stored_bytes += sight.record.stored_bytes();
    summary.hits += sight.touch.hits;
    summary.holes += sight.place.damaged ? 1 : 0;
    return !io.stopped();
  };
  EMBER_ASSIGN(const StoreReader::Walked walked, reader.walk(count));
  if (io.stopped()) return Error{ErrorCode::kCancelled, "stopped"};
  EMBER_ASSIGN(const std::vector<Conversation> heads, reader.conversations().list());
  summary.blocks = walked.blocks;
  summary.tails = walked.tails;
  summary.namespaces = namespaces.size();
  summary.conversations = heads.size();
  summary.unreadable_records = walked.unreadable;
  // A log that cannot be read costs these figures and nothing else.
  Result<std::vector<Window>> windows = read_windows(reader.facts().path);
  if (windows.ok()) summary.windows = std::move(windows).value();
  return {};
}

Result<StoreSummary> summarise(StoreReader& reader, const CommandIo& io, bool brief) {
  StoreSummary summary;
  summary.brief = brief;
  if (!brief) EMBER_TRY(count_records(reader, io, summary));
  summary.facts = reader.facts();
  summary.limits = reader.limits();
  const std::string& path = summary.facts.path;
  summary.epochs = reader.disk_stats().epochs;
  summary.disk_bytes = directory_bytes(path);
  summary.blocks_bytes = directory_bytes(path + "/blocks");
  summary.conversations_bytes = directory_bytes(path + "/conversations");
  summary.ballast_bytes = ballast_bytes_of(path);
  const QuarantineStats quarantine = reader.quarantine_stats();
  summary.quarantined = quarantine.records;
  summary.quarantine_bytes = quarantine.bytes;
  summary.live = reader.live_stats();
  return summary;
}

Json live_json(const BlockCacheStats& live) {
  Json json = {{"loading", live.loading},
               {"committed_blocks", live.committed_blocks},
               {"offloaded_blocks", live.offloaded_blocks},
               {"durable_blocks", live.durable_blocks},
               {"waiting_blocks", live.waiting_blocks},
               {"offload_failures", live.offload_failures},
               {"evicted_blocks", live.evicted_blocks},
               {"damaged_blocks", live.damaged_blocks},
               {"late_blocks", live.late_blocks},
               {"read_errors", live.read_errors},
               {"dedup_mismatch", live.dedup_mismatch},
               {"stranded", live.stranded},
               {"holes", live.holes},
               {"pinned_blocks", live.pinned_blocks},
               {"scrubbed_blocks", live.scrubbed_blocks},
               {"scrubbed_bytes", live.scrubbed_bytes},
               {"scrub_passes", live.scrub_passes},
               {"last_scrub_unix_us", live.last_scrub_unix_us},
               {"warmed_blocks", live.warmed_blocks},
               {"warm_up_left", live.warm_up_left},
               {"accepted_bytes", live.accepted_bytes},
               {"written_bytes", live.written_bytes},
               {"disk_limit_bytes", live.disk_limit_bytes},
               {"free_bytes", live.free_bytes},
               {"index_bytes", live.index_bytes}};
  for (size_t i = 0; i < kTierCount; ++i) {
    json["tiers"][std::string(tier_name(static_cast<Tier>(i)))] = {
        {"blocks", live.blocks[i]},
        {"capacity_blocks", live.capacity_blocks[i]},
        {"restored_tokens", live.restored_tokens[i]}};
  }
  return json;
}

void print_json(const StoreSummary& summary, std::ostream& out) {
  const StoreFacts& facts = summary.facts;
  Json json = {{"path", facts.path},
               {"state", "ok"},
               {"version", facts.version},
               {"encrypted", facts.encrypted},
               {"live", facts.live},
               {"holder_pid", facts.holder_pid},
               {"as_of_unix_us", facts.as_of_unix_us}};
  if (!summary.brief) {
    json.update(Json{{"blocks", summary.blocks},
                     {"tails", summary.tails},
                     {"tokens", summary.tokens},
                     {"hits", summary.hits},
                     {"holes", summary.holes},
                     {"namespaces", summary.namespaces},
                     {"conversations", summary.conversations},
                     {"epochs", summary.epochs},
                     {"raw_bytes", summary.raw_bytes},
                     {"stored_bytes", summary.stored_bytes},
                     {"compression_ratio", summary.ratio()},
                     {"unreadable_records", summary.unreadable_records}});
  }
  json.update(Json{{"disk_bytes", summary.disk_bytes},
                   {"blocks_bytes", summary.blocks_bytes},
                   {"ballast_bytes", summary.ballast_bytes},
                   {"conversations_bytes", summary.conversations_bytes},
                   {"quarantined", summary.quarantined},
                   {"quarantine_bytes", summary.quarantine_bytes},
                   {"health", facts.health}});
  if (summary.limits) {
    json["limits"] = {{"disk_bytes", disk_bytes_for(summary.limits->blocks_bytes)},
                      {"blocks_bytes", summary.limits->blocks_bytes},
                      {"full_blocks", summary.limits->full_blocks},
                      {"eviction", eviction_policy_name(summary.limits->eviction)}};
  }
  if (summary.is_damaged()) json["next"] = kRepairIsNext;
  for (const Window& window : summary.windows) {
    Json restored;
    for (size_t i = 0; i < kTierCount; ++i) {
      restored[std::string(tier_name(static_cast<Tier>(i)))] = window.restored[i];
    }
    json["requests"].push_back({{"within_us", window.us},
                                {"requests", window.requests},
                                {"tokens", window.tokens},
                                {"restored_tokens", std::move(restored)}});
  }
  if (summary.live) json["holder"] = live_json(*summary.live);
  if (summary.load) {
    json["holder"]["requests"] = {{"running", summary.load->running},
                                  {"queued", summary.load->queued},
                                  {"prompt_tokens", summary.load->prompt_tokens},
                                  {"answer_tokens", summary.load->answer_tokens}};
  }
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

class Rows {
 public:
  explicit Rows(CommandIo& io) : io_(io) {}
  void row(const std::string& name, const std::string& value) {
    const std::string line =
        name + std::string(name.size() < 16 ? 16 - name.size() : 0, ' ') + ' ' + value;
    io_.out << line << '\n';
  }

 private:
  CommandIo& io_;
};

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// Of the process that holds the store, since it was opened.
void print_live(const BlockCacheStats& live, Rows& rows) {
  for (size_t i = 0; i < kTierCount; ++i) {
    if (live.capacity_blocks[i] == 0 && live.blocks[i] == 0) continue;
    const std::string most =
        live.capacity_blocks[i] == 0 ? "" : " of " + grouped(live.capacity_blocks[i]);
    rows.row("in " + std::string(tier_name(static_cast<Tier>(i))),
             grouped(live.blocks[i]) + most + " blocks, " +
                 counted(live.restored_tokens[i], "token") +
                 " restored");
  }
  rows.row("to the disk", counted(live.durable_blocks, "block") + " durable, " +
                              grouped(live.waiting_blocks) + " on their way, " +
                              grouped(live.offload_failures) + " failed");
  if (live.accepted_bytes > 0) {
    rows.row("written", human_bytes(live.written_bytes) + " for " +
                            human_bytes(live.accepted_bytes) + " of blocks (" +
                            decimal(static_cast<double>(live.written_bytes) /
                                    static_cast<double>(live.accepted_bytes)) +
                            " times)");
  }
  rows.row("evicted", counted(live.evicted_blocks, "block"));
  rows.row("misses", grouped(live.damaged_blocks) + " damaged, " + grouped(live.late_blocks) +
                         " late, " + grouped(live.read_errors) + " unreadable blocks");
  rows.row("limit", human_bytes(live.disk_limit_bytes) + ", " + human_bytes(live.free_bytes) +
                        " free on the drive");
}

void print_counts(const StoreSummary& summary, Rows& rows) {
  rows.row("blocks", grouped(summary.blocks));
  rows.row("tails", grouped(summary.tails));
  rows.row("tokens", grouped(summary.tokens));
  rows.row("hits", grouped(summary.hits));
  rows.row("namespaces", grouped(summary.namespaces));
  rows.row("conversations", grouped(summary.conversations));
  rows.row("epochs", grouped(summary.epochs));
  rows.row("latents", human_bytes(summary.raw_bytes) + " as " + human_bytes(summary.stored_bytes) +
                          ", " + decimal(summary.ratio()) + " times smaller");
  rows.row("unreadable", counted(summary.unreadable_records, "record"));
}

void print_table(const StoreSummary& summary, CommandIo& io) {
  const StoreFacts& facts = summary.facts;
  Rows rows(io);
  rows.row("store", facts.path);
  rows.row("version", std::to_string(facts.version));
  rows.row("encrypted", facts.encrypted ? "yes" : "no");
  rows.row("health", facts.health);
  if (facts.holder_pid != 0) {
    rows.row("held by", "process " + std::to_string(facts.holder_pid) +
                            (facts.live ? "" : "; as of flush " + time_text(facts.as_of_unix_us)));
  }
  if (!summary.brief) print_counts(summary, rows);
  const uint64_t blocks_bytes =
      summary.blocks_bytes - std::min(summary.blocks_bytes, summary.ballast_bytes);
  rows.row("on disk", human_bytes(summary.disk_bytes));
  rows.row("  ballast", human_bytes(summary.ballast_bytes) + ", to be given up on a full drive");
  rows.row("  blocks", human_bytes(blocks_bytes));
  rows.row("  conversations", human_bytes(summary.conversations_bytes) + " with the tails");
  rows.row("in quarantine",
           counted(summary.quarantined, "record") + ", " + human_bytes(summary.quarantine_bytes));
  if (summary.holes > 0) rows.row("holes", counted(summary.holes, "block") + " to be healed");
  for (const Window& window : summary.windows) {
    rows.row(window.name, counted(window.requests, "request") + ", " +
                              percent_text(static_cast<double>(window.all_restored()),
                                           static_cast<double>(window.tokens)) +
                              " of " + counted(window.tokens, "token") + " restored");
  }
  if (summary.live) {
    print_live(*summary.live, rows);
  } else if (summary.limits) {
    rows.row("limit", human_bytes(disk_bytes_for(summary.limits->blocks_bytes)) + ", eviction " +
                          std::string(eviction_policy_name(summary.limits->eviction)) +
                          ", as it was last held");
  }
  if (summary.is_damaged()) rows.row("next", kRepairIsNext);
  io.out << std::flush;
}

}  // namespace

Result<int> run_stat(const StatOptions& options, CommandContext& context) {
  const Result<StoreSummary> summary = [&]() -> Result<StoreSummary> {
    EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
    EMBER_ASSIGN(StoreSummary found, summarise(*reader, context.io, options.brief));
    if (found.live && context.load) found.load = context.load();
    return found;
  }();
  if (summary) {
    if (options.json) {
      print_json(*summary, context.io.out);
    } else {
      print_table(*summary, context.io);
    }
    return kExitOk;
  }
  if (!options.json) return summary.error();
  const Json json = {{"path", options.store.resolved()},
                     {"state", "unusable"},
                     {"reason", summary.error().message}};
  context.io.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  print_error(context.io.err, summary.error().message);
  return kExitFailed;
}

}  // namespace ember
