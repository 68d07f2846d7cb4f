// Engine bench: how fast the engine is beside what the machine gives: prefill beside its products
// alone, decode beside the memory's bandwidth, a long context beside a short one, a restore
// beside computing, two threads beside one; each with its bar.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/format.h"
#include "bench/bench_program.h"
#include "bench/engine_figures.h"
#include "bench/peaks.h"
#include "bench/step_rig.h"
#include "tests/support/temp_folder.h"
#include "tools/make_random_model.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kNotes = R"(Without --model a random one of DeepSeek-V2-Lite's shape is made
(8 layers and all its experts take 9.3 GB on disk and, mapped, of RAM). Bars are printed as
"holds" or "FAILS" and decide nothing. --out writes engine_bench.json and engine_bench.md.)";

struct Arguments {
  std::string model;
  std::string config = "configs/models/v2_lite.json";
  std::string work;  // folder for the made model and the store
  uint32_t layers = 8;
  uint32_t experts = 64;
  size_t tokens = 4096;
  size_t positions = 8192;
  int tries = 3;
  std::string attention = "auto";
  size_t chunk = 256;
  bool steps_only = false;
  BenchOutput output;
};

// What the steps of one team of workers take.
struct TeamFigures {
  int workers = 0;
  StepCost near_step, far_step;            // a chunk that ends at kNear, and at --positions
  StepCost near_attention, far_attention;  // of them, alone
  StepCost matmuls;
  StepCost decode;
  double read_bytes_per_s = 0;
};

struct Measured {
  size_t far = 0;
  size_t chunk = 0;       // tokens of the far step
  size_t near_chunk = 0;  // of the near one: as many as lie before kNear
  bool steps_only = false;
  EngineFigures engine;  // empty then
  TeamFigures one, all;
  StepCost decode_work;  // flop and bytes of a token at the engine's position
};

constexpr size_t kNear = 512;

AttentionMode mode_of(const Arguments& arguments) {
  if (arguments.attention == "auto") return AttentionMode::kAuto;
  return arguments.attention == "naive" ? AttentionMode::kNaive : AttentionMode::kAbsorb;
}

Result<TeamFigures> measure_team(const Arguments& arguments, const std::string& model, int workers,
                                 Measured& measured) {
  StepRigOptions options;
  options.model = model;
  options.workers = workers;
  options.attention = mode_of(arguments);
  options.positions = measured.far;
  options.max_rows = measured.chunk;
  EMBER_ASSIGN(const auto rig, StepRig::open(options));
  const int tries = arguments.tries;
  TeamFigures team;
  team.workers = rig->workers();
  const size_t near_chunk = measured.near_chunk;
  rig->step(near_chunk, kNear, 1);  // the weights come into memory
  team.near_step = rig->step(near_chunk, kNear, tries);
  team.matmuls = rig->matmuls(near_chunk, kNear, tries);
  team.decode = rig->step(1, kNear, 4 * tries);
  team.read_bytes_per_s = measure_read_bytes_per_s(team.workers);
  if (workers == 1) return team;
  if (!measured.steps_only) {
    measured.decode_work = rig->step(1, measured.engine.decode_position, 1);
  }
  team.far_step = rig->step(measured.chunk, measured.far, tries);
  team.near_attention = rig->attention(near_chunk, kNear, tries);
  team.far_attention = rig->attention(measured.chunk, measured.far, tries);
  return team;
}

double rate(const StepCost& cost) { return cost.flop / cost.seconds; }

// A bar: what was found, and what it is held to.
struct Bar {
  std::string what;
  double found;
  double bar;
  bool at_most;
  bool holds() const { return at_most ? found <= bar : found >= bar; }
};

double matmul_tokens_per_s(const Measured& m) {
  return static_cast<double>(m.near_chunk) / m.all.matmuls.seconds;
}

double pair_seconds(const StepCost& attention, size_t rows, size_t end) {
  return attention.seconds / attention_pairs(rows, end);
}

double token_seconds(const StepCost& step, size_t rows) {
  return step.seconds / static_cast<double>(rows);
}

std::vector<Bar> bars_of(const Measured& m) {
  std::vector<Bar> bars;
  for (const auto& [tokens, seconds] : m.engine.prefill) {
    bars.push_back({"prefill of " + std::to_string(tokens) + " over its products alone",
                    static_cast<double>(tokens) / seconds / matmul_tokens_per_s(m), 0.6, false});
  }
  bars.push_back({"attention a pair, far over near",
                  pair_seconds(m.all.far_attention, m.chunk, m.far) /
                      pair_seconds(m.all.near_attention, m.near_chunk, kNear),
                  1.2, true});
  bars.push_back({"forward a token, far over near",
                  token_seconds(m.all.far_step, m.chunk) /
                      token_seconds(m.all.near_step, m.near_chunk),
                  2, true});
  if (!m.steps_only) {
    bars.push_back({"restore over prefill", m.engine.disk.ready_s / m.engine.restored_computed_s,
                    0.01, true});
    bars.push_back({"decode over the memory's bandwidth",
                    m.decode_work.bytes / m.engine.decode_s / m.engine.read_bytes_per_s, 0.8,
                    false});
  }
  const double gemm_scaling = m.one.matmuls.seconds / m.all.matmuls.seconds;
  const double read_scaling = m.all.read_bytes_per_s / m.one.read_bytes_per_s;
  bars.push_back({"prefill scaling over the products'",
                  m.one.near_step.seconds / m.all.near_step.seconds / gemm_scaling, 0.9, false});
  bars.push_back({"decode scaling over the memory's",
                  m.one.decode.seconds / m.all.decode.seconds / read_scaling, 0.9, false});
  return bars;
}

void add_steps(const Measured& m, std::string& out) {
  const auto row = [&out](const std::string& what, const StepCost& cost, size_t tokens) {
    print_to(out, "| %s | %.2f | %.2f | %.1f | %.1f |\n", what.c_str(), cost.seconds * 1e3,
             static_cast<double>(tokens) / cost.seconds, rate(cost) * 1e-9,
             cost.bytes / cost.seconds * 1e-9);
  };
  const std::string far = std::to_string(m.far);
  const std::string near = std::to_string(kNear);
  const std::string workers = std::to_string(m.all.workers);
  out += "| step, " + workers + " threads unless said | ms | tok/s | GFLOP/s | GB/s |\n"
         "|---|---|---|---|---|\n";
  const std::string near_step = std::to_string(m.near_chunk) + " tokens up to " + near;
  row(near_step, m.all.near_step, m.near_chunk);
  row(std::to_string(m.chunk) + " tokens up to " + far, m.all.far_step, m.chunk);
  row("products alone up to " + near, m.all.matmuls, m.near_chunk);
  row("attention alone up to " + near, m.all.near_attention, m.near_chunk);
  row("attention alone up to " + far, m.all.far_attention, m.chunk);
  row("one token at " + near, m.all.decode, 1);
  row(near_step + ", one thread", m.one.near_step, m.near_chunk);
  row("its products alone, one thread", m.one.matmuls, m.near_chunk);
  row("one token at " + near + ", one thread", m.one.decode, 1);
}

void add_engine(const Measured& m, std::string& out) {
  const EngineFigures& e = m.engine;
  out += "| through the engine | seconds | tok/s |\n|---|---|---|\n";
  for (const auto& [tokens, seconds] : e.prefill) {
    print_to(out, "| prefill of %zu tokens | %.3f | %.1f |\n", tokens, seconds,
             static_cast<double>(tokens) / seconds);
  }
  const auto restored = static_cast<double>(e.restored_tokens);
  const auto restore = [&](const char* tier, const EngineFigures::Restore& r) {
    print_to(out, "| restore of %zu from %s, %s, %.2f GB/s | %.4f | %.0f |\n", e.restored_tokens,
             tier, human_bytes(e.restored_bytes).c_str(),
             static_cast<double>(e.restored_bytes) / r.ready_s * 1e-9, r.ready_s,
             restored / r.ready_s);
    print_to(out, "| time to first token then | %.4f | |\n", r.first_token_s);
  };
  restore("disk", e.disk);
  restore("host RAM", e.host);
  print_to(out, "| decode, %.2f GB a token, %.1f GB/s | %.4f | %.2f |\n",
           m.decode_work.bytes * 1e-9, m.decode_work.bytes / e.decode_s * 1e-9, e.decode_s,
           1 / e.decode_s);
}

void add_memory(const EngineFigures& e, std::string& out) {
  print_to(out, "%.1f GB/s beside the decode through the engine. %u of its %u steady steps ",
           e.read_bytes_per_s * 1e-9, e.steps - e.allocating_steps, e.steps);
  out += "allocate nothing on the engine thread. ";
  print_to(out, "%s anonymous memory, weights apart, of a budget of %s and 200 MB.",
           human_bytes(e.anonymous_bytes).c_str(), human_bytes(e.ram_bytes).c_str());
}

std::string markdown(const Measured& m) {
  std::string out;
  if (!m.steps_only) {
    add_engine(m, out);
    out += '\n';
  }
  add_steps(m, out);
  print_to(out, "\nMemory read at %.1f GB/s by %d threads, %.1f by one. ",
           m.all.read_bytes_per_s * 1e-9, m.all.workers, m.one.read_bytes_per_s * 1e-9);
  if (!m.steps_only) add_memory(m.engine, out);
  out += "\n\n| bar | found | wanted | |\n|---|---|---|---|\n";
  for (const Bar& bar : bars_of(m)) {
    print_to(out, "| %s | %.3f | at %s %.2f | %s |\n", bar.what.c_str(), bar.found,
             bar.at_most ? "most" : "least", bar.bar, bar.holds() ? "holds" : "FAILS");
  }
  return out;
}

Json cost_json(const StepCost& cost) {
  return {{"seconds", cost.seconds}, {"flop", cost.flop}, {"bytes", cost.bytes}};
}

Json team_json(const TeamFigures& team) {
  return {{"workers", team.workers},
          {"step_near", cost_json(team.near_step)},
          {"step_far", cost_json(team.far_step)},
          {"attention_near", cost_json(team.near_attention)},
          {"attention_far", cost_json(team.far_attention)},
          {"matmuls", cost_json(team.matmuls)},
          {"decode", cost_json(team.decode)},
          {"read_bytes_per_s", team.read_bytes_per_s}};
}

Json to_json(const Arguments& arguments, const Measured& m) {
  const EngineFigures& e = m.engine;
  Json prefill = Json::array();
  for (const auto& [tokens, seconds] : e.prefill) {
    prefill.push_back({{"tokens", tokens}, {"seconds", seconds}});
  }
  Json bars = Json::array();
  for (const Bar& bar : bars_of(m)) {
    bars.push_back({{"what", bar.what}, {"found", bar.found}, {"bar", bar.bar},
                    {"at_most", bar.at_most}, {"holds", bar.holds()}});
  }
  return {{"attention", arguments.attention},
          {"near", kNear},
          {"far", m.far},
          {"chunk", m.chunk},
          {"near_chunk", m.near_chunk},
          {"steps_only", m.steps_only},
          {"prefill", std::move(prefill)},
          {"restored_tokens", e.restored_tokens},
          {"restored_computed_s", e.restored_computed_s},
          {"restore_disk_s", e.disk.ready_s},
          {"restore_host_s", e.host.ready_s},
          {"first_token_disk_s", e.disk.first_token_s},
          {"first_token_host_s", e.host.first_token_s},
          {"decode_s", e.decode_s},
          {"read_bytes_per_s", e.read_bytes_per_s},
          {"decode_work", cost_json(m.decode_work)},
          {"allocating_steps", e.allocating_steps},
          {"anonymous_bytes", e.anonymous_bytes},
          {"one", team_json(m.one)},
          {"all", team_json(m.all)},
          {"bars", std::move(bars)}};
}

Status make_model(const Arguments& arguments, const std::string& folder) {
  EMBER_ASSIGN(ModelConfig config, load_model_config_file(arguments.config));
  config.layers = arguments.layers;
  config.routed_experts = arguments.experts;
  return make_random_model(config, 1, DType::kBf16, folder, RandomDraw::kShared);
}

Result<EngineFigures> engine_figures(const Arguments& arguments, const ModelConfig& config,
                                     const std::string& model, const std::string& folder) {
  EngineFiguresOptions options;
  options.model = model;
  options.store = folder + "/store";
  options.attention = mode_of(arguments);
  options.chunk_tokens = static_cast<uint32_t>(arguments.chunk);
  const size_t longest = std::min<size_t>(arguments.tokens, config.max_positions - 1);
  for (size_t tokens = std::max(kNear, arguments.chunk); tokens < longest; tokens *= 2) {
    options.lengths.push_back(tokens);
  }
  options.lengths.push_back(longest);
  options.restored_tokens = std::min(options.restored_tokens, longest - 1);
  return measure_engine(options);
}

Result<Measured> measure(const Arguments& arguments, const std::string& model,
                         const std::string& folder) {
  EMBER_ASSIGN(const ModelConfig config, load_model_config(model));
  Measured measured;
  measured.far = std::min<size_t>(arguments.positions, config.max_positions);
  measured.chunk = std::min(arguments.chunk, measured.far);
  measured.near_chunk = std::min(arguments.chunk, kNear);
  measured.steps_only = arguments.steps_only;
  if (!measured.steps_only) {
    EMBER_ASSIGN(measured.engine, engine_figures(arguments, config, model, folder));
  }
  EMBER_ASSIGN(measured.all, measure_team(arguments, model, 0, measured));
  EMBER_ASSIGN(measured.one, measure_team(arguments, model, 1, measured));
  return measured;
}

Result<int> run(const Arguments& arguments) {
  const TempFolder temporary;
  const std::string folder = arguments.work.empty() ? temporary.path() : arguments.work;
  std::string model = arguments.model;
  if (model.empty()) {
    model = folder + "/model";
    if (!fs::exists(model)) EMBER_TRY(make_model(arguments, model));
  }
  const TempFolder store;
  EMBER_ASSIGN(const Measured measured, measure(arguments, model, store.path()));
  const std::string json = to_json(arguments, measured).dump();
  const std::string table = markdown(measured);
  std::printf("%s\n", arguments.output.json ? json.c_str() : table.c_str());
  EMBER_TRY(write_file(arguments.output, "engine_bench.json", json + '\n'));
  EMBER_TRY(write_file(arguments.output, "engine_bench.md", table));
  return 0;
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) {
  ember::Arguments arguments;
  CLI::App app("How fast the engine is beside what the machine gives", "engine_bench");
  app.add_option("--model", arguments.model, "Model folder, for example models/demo");
  app.add_option("--config", arguments.config, "Configuration of the model to make")
      ->capture_default_str();
  app.add_option("--work", arguments.work, "Folder where the made model stays");
  app.add_option("--layers", arguments.layers, "Its layers")->capture_default_str();
  app.add_option("--experts", arguments.experts, "Its routed experts")->capture_default_str();
  app.add_option("--tokens", arguments.tokens, "Prompt")->capture_default_str()
      ->check(CLI::Range(513, 1 << 20));
  app.add_option("--positions", arguments.positions, "The far end of the comparison")
      ->capture_default_str()->check(CLI::Range(512, 1 << 20));
  app.add_option("--tries", arguments.tries, "Of each step; the best counts")
      ->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--attention", arguments.attention, "absorb, naive or auto")
      ->capture_default_str()->check(CLI::IsMember({"absorb", "naive", "auto"}));
  app.add_option("--chunk", arguments.chunk, "Prompt tokens in a step")
      ->capture_default_str()->check(CLI::Range(2, 1 << 16));
  app.add_flag("--steps-only", arguments.steps_only, "Only single steps, not the engine");
  ember::add_output_flags(app, arguments.output, "the table and the JSON");
  app.footer(ember::kNotes);
  return ember::run_bench(app, argc, argv, [&] { return ember::run(arguments); });
}
