// simulate: reads the requests, replays them for each capacity and policy, and prints what it was.
#include "tools/commands/look/simulate.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "store/disk_plan.h"
#include "store/replay/log_trace.h"
#include "store/replay/simulation.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"
#include "tools/plot/line_plot.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kSampledBlocks = 4096;
constexpr size_t kFewRequests = 100;

// The requests, and what is known of where they came from.
struct Past {
  std::string source;
  replay::LogTrace log;  // of a trace: without times and what was restored
  CapacityBasis basis;
  double payload_bytes = 0;  // mean, of a block as it is written; 0: not known
  std::optional<EvictionPolicy> policy;  // the store's present one

  const replay::Trace& trace() const { return log.trace; }
  uint64_t tokens(uint64_t blocks) const { return blocks * trace().block_tokens; }
  bool logged() const { return log.first_unix_us != 0; }
  uint64_t logged_restored() const {
    return std::accumulate(log.restored_tokens.begin(), log.restored_tokens.end(), uint64_t{0});
  }
};

struct Row {
  PlannedCapacity capacity;
  EvictionPolicy policy = EvictionPolicy::kAuto;
  replay::SimulationReport report;
  bool present = false;  // capacity and policy are the store's
};

struct Table {
  std::vector<Row> rows;
  replay::SimulationReport unlimited;
};

// The size of the store's blocks, from some of them: their hashes say nothing of their sizes, so
// the first ones are as good as any.
Status learn_blocks(StoreReader& reader, Past& past) {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  past.log.trace.block_tokens = kDefaultBlockTokens;
  const Result<StoreReader::Walked> walked = reader.walk([&](const BlockSight& sight) {
    if (sight.record.tail) return false;
    if (!sight.place.durable || sight.record.stored_bytes() == 0) return true;
    past.log.trace.block_tokens = static_cast<uint32_t>(sight.record.tokens.size());
    bytes += sight.record.stored_bytes();
    return ++blocks < kSampledBlocks;
  });
  if (!walked.ok()) return walked.error();
  if (blocks == 0) return {};
  past.payload_bytes = static_cast<double>(bytes) / static_cast<double>(blocks);
  past.basis.block_bytes = past.payload_bytes;
  const std::optional<StoreLimits> limits = reader.limits();
  if (!limits) return {};
  past.policy = limits->eviction;
  past.basis.present_disk_bytes = disk_bytes_for(limits->blocks_bytes);
  // A store that was full knows what a block takes with all that is around it.
  if (limits->full_blocks > 0) {
    past.basis.block_bytes =
        static_cast<double>(limits->blocks_bytes) / static_cast<double>(limits->full_blocks);
  }
  past.basis.present_blocks = static_cast<uint64_t>(
      std::llround(static_cast<double>(limits->blocks_bytes) / past.basis.block_bytes));
  return {};
}

Result<Past> read_log(const SimulateOptions& options, CommandContext& context) {
  Past past;
  StoreChoice choice = options.store;
  choice.read_only = true;  // also beside its holder: of the store only the sizes are asked
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(choice));
  EMBER_TRY(learn_blocks(*reader, past));
  past.source = reader->facts().path;
  EMBER_ASSIGN(past.log, replay::read_log_trace(past.source, past.trace().block_tokens));
  if (past.trace().requests.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 past.source + ": it keeps no access log; generate and chat write one with "
                               "--access-log 64MiB, from then on, each time it is given"};
  }
  if (past.trace().references == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 past.source + ": the access log says nothing yet: none of its " +
                     counted(past.trace().requests.size(), "request") + " had a prompt of " +
                     std::to_string(past.trace().block_tokens) + " tokens, which is one block"};
  }
  return past;
}

Result<Past> read_past(const SimulateOptions& options, CommandContext& context) {
  Past past;
  Progress progress(context.io);
  progress.show("reading", 0);
  if (options.trace.path.empty()) {
    EMBER_ASSIGN(past, read_log(options, context));
  } else {
    past.source = options.trace.path;
    EMBER_ASSIGN(past.log.trace, replay::read_trace(options.trace));
    past.payload_bytes = past.basis.block_bytes = static_cast<double>(options.block_bytes);
  }
  past.basis.distinct_blocks = past.trace().blocks();
  return past;
}

Result<Table> replay_all(const SimulateOptions& options, const Past& past,
                         const std::vector<PlannedCapacity>& capacities, CommandIo& io) {
  const replay::Trace& trace = past.trace();
  Progress progress(io);
  const auto runs = static_cast<double>(1 + capacities.size() * options.policies.size());
  double done = 0;
  const auto proceed = [&](double share) {
    progress.show("replaying", (done + share) / runs);
    return !io.stopped();
  };
  Table table;
  EMBER_ASSIGN(table.unlimited,
               replay::simulate(trace, trace.blocks(), EvictionPolicy::kLeafLru, proceed));
  for (const PlannedCapacity& capacity : capacities) {
    for (const EvictionPolicy policy : options.policies) {
      ++done;
      Row row{capacity, policy, table.unlimited, capacity.present && policy == past.policy};
      // Where nothing has to go, no policy matters.
      if (capacity.blocks < trace.blocks()) {
        EMBER_ASSIGN(row.report, replay::simulate(trace, capacity.blocks, policy, proceed));
      }
      table.rows.push_back(row);
    }
  }
  return table;
}

double hit_rate(const Past& past, uint64_t hits) {
  const auto tokens = static_cast<double>(past.trace().prompt_tokens);
  return tokens > 0 ? static_cast<double>(past.tokens(hits)) / tokens : 0;
}

uint64_t written_bytes(const Past& past, const Row& row) {
  return static_cast<uint64_t>(static_cast<double>(row.report.inserted) * past.payload_bytes);
}

Json row_json(const Past& past, const Row& row) {
  const uint64_t restored = past.tokens(row.report.hits);
  Json json = {{"blocks", row.capacity.blocks},
               {"percent", 100.0 * static_cast<double>(row.capacity.blocks) /
                               static_cast<double>(past.trace().blocks())},
               {"policy", eviction_policy_name(row.policy)},
               {"hit_rate", hit_rate(past, row.report.hits)},
               {"hits", row.report.hits},
               {"restored_tokens", restored},
               {"computed_tokens", past.trace().prompt_tokens - restored},
               {"inserted_blocks", row.report.inserted},
               {"evicted_blocks", row.report.evicted},
               {"switches", row.report.switches},
               {"present", row.present}};
  if (row.capacity.disk_bytes > 0) json["disk_bytes"] = row.capacity.disk_bytes;
  if (past.payload_bytes > 0) json["written_bytes"] = written_bytes(past, row);
  return json;
}

void print_json(const Past& past, const Table& table, std::ostream& out) {
  const replay::Trace& trace = past.trace();
  Json json = {{"source", past.source},
               {"requests", trace.requests.size()},
               {"prompt_tokens", trace.prompt_tokens},
               {"block_tokens", trace.block_tokens},
               {"looked_up_blocks", trace.references},
               {"distinct_blocks", trace.blocks()},
               {"block_bytes", past.payload_bytes},
               {"most_restored_tokens", past.tokens(table.unlimited.hits)}};
  if (past.logged()) {
    json["first_unix_us"] = past.log.first_unix_us;
    json["last_unix_us"] = past.log.last_unix_us;
    json["logged_restored_tokens"] = past.logged_restored();
  }
  if (past.policy) {
    json["present"] = {{"disk_bytes", past.basis.present_disk_bytes},
                       {"blocks", past.basis.present_blocks},
                       {"policy", eviction_policy_name(*past.policy)}};
  }
  json["rows"] = Json::array();
  for (const Row& row : table.rows) json["rows"].push_back(row_json(past, row));
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void print_head(const Past& past, const Table& table, CommandIo& io) {
  const replay::Trace& trace = past.trace();
  const auto all = static_cast<double>(trace.prompt_tokens);
  io.out << "requests   " << grouped(trace.requests.size());
  if (past.logged()) {
    io.out << ", from " << time_text(past.log.first_unix_us) << " to "
           << time_text(past.log.last_unix_us);
  }
  io.out << "\nprompts    " << counted(trace.prompt_tokens, "token");
  if (past.logged()) {
    const auto restored = static_cast<double>(past.logged_restored());
    io.out << "; as it was, " << percent_text(restored, all) << " of them were restored";
  }
  io.out << "\nblocks     " << grouped(trace.blocks()) << " distinct, of "
         << trace.block_tokens << " tokens";
  if (past.payload_bytes > 0) {
    io.out << " and " << human_bytes(static_cast<uint64_t>(past.payload_bytes));
  }
  io.out << "\nat most    "
         << percent_text(static_cast<double>(past.tokens(table.unlimited.hits)), all)
         << " could have been restored by full blocks, from an empty store without a limit\n\n";
}

// What a reader should know before trusting the table.
void print_notes(const Past& past, const Table& table, std::ostream& out) {
  if (past.basis.block_bytes > 0 && table.rows.front().capacity.disk_bytes == 0) {
    out << "-: less than a store may have (" << human_bytes(kLeastDiskBytes) << ")\n";
  }
  if (past.trace().requests.size() < kFewRequests) {
    out << "these are few requests: as more come, the figures will change\n";
  }
  if (table.rows.front().capacity.blocks >= past.trace().blocks()) {
    out << "each capacity holds all of these blocks, so they do not differ yet\n";
  }
}

std::string size_text(const PlannedCapacity& capacity) {
  return capacity.disk_bytes > 0 ? human_bytes(capacity.disk_bytes) : "-";
}

void print_table(const Past& past, const Table& table, CommandIo& io) {
  print_head(past, table, io);
  const bool sized = past.basis.block_bytes > 0;
  std::vector<TextTable::Column> columns = {{"blocks", true},   {"share", true},
                                            {"policy"},         {"restored", true},
                                            {"tokens", true},   {"computed", true}};
  if (sized) columns.insert(columns.begin(), {"disk-bytes", true});
  if (sized) columns.push_back({"written", true});
  columns.push_back({""});
  TextTable text(columns);
  const uint64_t* last = nullptr;
  for (const Row& row : table.rows) {
    const bool same = last != nullptr && *last == row.capacity.blocks;
    last = &row.capacity.blocks;
    const uint64_t restored = past.tokens(row.report.hits);
    const std::string share = row.capacity.blocks >= past.trace().blocks()
                                  ? "all"
                                  : percent_text(static_cast<double>(row.capacity.blocks),
                                                 static_cast<double>(past.trace().blocks()));
    std::vector<std::string> cells = {same ? "" : grouped(row.capacity.blocks),
                                      same ? "" : share,
                                      std::string(eviction_policy_name(row.policy)),
                                      percent_text(hit_rate(past, row.report.hits), 1),
                                      grouped(restored),
                                      grouped(past.trace().prompt_tokens - restored)};
    if (sized) cells.insert(cells.begin(), same ? "" : size_text(row.capacity));
    if (sized) cells.push_back(human_bytes(written_bytes(past, row)));
    cells.push_back(row.present ? "<- as it is" : "");
    text.add(std::move(cells));
  }
  io.out << text.text(io.width, io.colour);
  print_notes(past, table, io.out);
  io.out << std::flush;
}

Status write_plot(const SimulateOptions& options, const Past& past, const Table& table) {
  std::vector<std::string> names;
  for (const EvictionPolicy policy : options.policies) {
    names.emplace_back(eviction_policy_name(policy));
  }
  const bool sized = std::all_of(table.rows.begin(), table.rows.end(), [](const Row& row) {
    return row.capacity.disk_bytes > 0;
  });
  LinePlot plot("Prompt tokens restored, by capacity",
                sized ? "capacity as --disk-bytes" : "capacity in blocks", "per cent", names,
                LinePlot::Scale::kPercent);
  for (size_t i = 0; i < table.rows.size(); i += names.size()) {
    const PlannedCapacity& capacity = table.rows[i].capacity;
    std::vector<double> values;
    for (size_t j = i; j < i + names.size(); ++j) {
      values.push_back(100 * hit_rate(past, table.rows[j].report.hits));
    }
    const auto x = static_cast<double>(sized ? capacity.disk_bytes : capacity.blocks);
    plot.add(x, std::move(values),
             sized ? human_bytes(capacity.disk_bytes) : grouped(capacity.blocks));
    if (capacity.present) plot.mark(x, "as it is");
  }
  std::ofstream file(options.plot, std::ios::binary);
  file << plot.svg() << std::flush;
  if (file) return {};
  return {ErrorCode::kIo, options.plot + ": cannot be written"};
}

}  // namespace

Result<int> run_simulate(const SimulateOptions& options, CommandContext& context) {
  EMBER_ASSIGN(const Past past, read_past(options, context));
  EMBER_ASSIGN(const std::vector<PlannedCapacity> capacities,
               plan_capacities(options.capacities, past.basis));
  EMBER_ASSIGN(const Table table, replay_all(options, past, capacities, context.io));
  if (!options.plot.empty()) EMBER_TRY(write_plot(options, past, table));
  if (options.json) {
    print_json(past, table, context.io.out);
  } else {
    print_table(past, table, context.io);
  }
  return kExitOk;
}

}  // namespace ember
