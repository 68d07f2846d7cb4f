// Needle bench: how many facts planted in a long handbook the demo model gives back, by depth and
// length, in each precision of the cache; and whether a restored cache changes any answer.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "bench/bench_program.h"
#include "bench/heat_map.h"
#include "tests/support/needle.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNotes = R"(Exit code 1 when an answer after a restore is not that
of the uninterrupted run.
--out writes needle.json, needle.md, needle_bf16.svg, needle_fp8.svg, and needle_text.txt:
the contexts with their questions and right answers as chats, for emberkv perplexity.)";

struct Arguments {
  std::string model = "models/demo";
  std::vector<size_t> lengths = {512, 1024, 2048, 3072, 4096};
  size_t depths = 10;
  size_t contexts = 4;
  uint64_t seed = 1;
  std::vector<std::string> caches = {"bf16", "fp8"};
  BenchOutput output;
};

struct Measured {
  std::string cache;
  NeedleResult result;
  double seconds = 0;
};

double share(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Result<Measured> measure(const Arguments& arguments, const std::string& cache) {
  const TempFolder folder;
  NeedleOptions options;
  options.model_path = arguments.model;
  options.store_path = folder / "store";
  options.cache_dtype = cache == "fp8" ? DType::kF8E4M3 : DType::kBf16;
  options.lengths = arguments.lengths;
  options.depths = arguments.depths;
  options.contexts = arguments.contexts;
  options.seed = arguments.seed;
  options.progress = [&cache](double done) {
    std::fprintf(stderr, "\r%s %3.0f %%%s", cache.c_str(), 100 * done, done >= 1 ? "\n" : "");
  };
  const int64_t start = system_clock().now_us();
  EMBER_ASSIGN(NeedleResult result, run_needle(options));
  return Measured{cache, std::move(result),
                  static_cast<double>(system_clock().now_us() - start) * 1e-6};
}

bool whole_and_equal(const NeedleCell& total) {
  return total.host_restored == total.asked && total.disk_restored == total.asked &&
         total.host_differs == 0 && total.disk_differs == 0 && total.cold_differs == 0;
}

NeedleCell of_length(const NeedleResult& result, size_t length) {
  NeedleResult part;
  for (const NeedleCell& cell : result.cells) {
    if (cell.length == length) part.cells.push_back(cell);
  }
  return part.total();
}

std::string depth_name(const Arguments& arguments, size_t depth) {
  return std::to_string(100 * (2 * depth + 1) / (2 * arguments.depths)) + " %";
}

// Shares in per cent: a line for each depth, a column for each length, for one precision.
std::string markdown(const Arguments& arguments, const Measured& measured) {
  const NeedleCell total = measured.result.total();
  std::string out;
  print_to(out,
           "**%s cache**, %zu bytes a token: %zu of %zu right (%.1f %%). After a restore "
           "from host RAM %zu answers differ, after one from disk %zu, and of the %zu asked "
           "without a cache %zu.\n\n",
           measured.cache.c_str(), size_t{measured.result.token_bytes}, total.right, total.asked,
           100 * share(total.right, total.asked), total.host_differs, total.disk_differs,
           total.cold_asked, total.cold_differs);
  std::string rule = "|---|";
  out += "| depth |";
  for (const size_t length : arguments.lengths) {
    out += ' ' + std::to_string(length) + " |";
    rule += "---|";
  }
  out += '\n' + rule + '\n';
  const auto add_share = [&out](const NeedleCell& cell) {
    print_to(out, " %.0f |", 100 * share(cell.right, cell.asked));
  };
  for (size_t depth = 0; depth < arguments.depths; ++depth) {
    out += "| " + depth_name(arguments, depth) + " |";
    for (size_t i = 0; i < arguments.lengths.size(); ++i) {
      add_share(measured.result.cells[i * arguments.depths + depth]);
    }
    out += '\n';
  }
  out += "| all |";
  for (const size_t length : arguments.lengths) add_share(of_length(measured.result, length));
  return out + '\n';
}

std::string picture(const Arguments& arguments, const Measured& measured) {
  std::vector<std::string> names;
  for (const size_t length : arguments.lengths) names.push_back(std::to_string(length));
  HeatMap map("Right answers in per cent, " + measured.cache + " cache", "context tokens",
              "depth", names);
  for (size_t depth = 0; depth < arguments.depths; ++depth) {
    std::vector<double> shares;
    for (size_t i = 0; i < arguments.lengths.size(); ++i) {
      const NeedleCell& cell = measured.result.cells[i * arguments.depths + depth];
      shares.push_back(share(cell.right, cell.asked));
    }
    map.add(depth_name(arguments, depth), shares);
  }
  return map.svg();
}

Json to_json(const Measured& measured) {
  const NeedleCell total = measured.result.total();
  Json cells = Json::array();
  for (const NeedleCell& cell : measured.result.cells) {
    cells.push_back({{"length", cell.length}, {"depth", cell.depth}, {"asked", cell.asked},
                     {"right", cell.right}});
  }
  return {{"cache", measured.cache},
          {"token_bytes", measured.result.token_bytes},
          {"asked", total.asked},
          {"right", total.right},
          {"restored_from_host", total.host_restored},
          {"restored_from_disk", total.disk_restored},
          {"host_differs", total.host_differs},
          {"disk_differs", total.disk_differs},
          {"cold_asked", total.cold_asked},
          {"cold_differs", total.cold_differs},
          {"seconds", measured.seconds},
          {"cells", std::move(cells)}};
}

Status write_out(const Arguments& arguments, const std::vector<Measured>& all, const Json& json) {
  const BenchOutput& output = arguments.output;
  std::string text;
  for (const std::string& chat : all.front().result.texts) text += chat + '\n';
  std::string table;
  for (const Measured& measured : all) {
    if (!table.empty()) table += '\n';
    table += markdown(arguments, measured);
    EMBER_TRY(write_file(output, "needle_" + measured.cache + ".svg",
                         picture(arguments, measured)));
  }
  EMBER_TRY(write_file(output, "needle.json", json.dump() + '\n'));
  EMBER_TRY(write_file(output, "needle.md", table));
  return write_file(output, "needle_text.txt", text);
}

Result<int> run(const Arguments& arguments) {
  std::vector<Measured> all;
  Json json = Json::array();
  bool good = true;
  for (const std::string& cache : arguments.caches) {
    EMBER_ASSIGN(Measured measured, measure(arguments, cache));
    good = good && whole_and_equal(measured.result.total());
    json.push_back(to_json(measured));
    if (!arguments.output.json) {
      std::printf("%s(%.0f s)\n%s\n\n", markdown(arguments, measured).c_str(), measured.seconds,
                  whole_and_equal(measured.result.total())
                      ? "holds  restored answers are those of the uninterrupted run"
                      : "FAILS  restored answers are those of the uninterrupted run");
    }
    all.push_back(std::move(measured));
  }
  if (arguments.output.json) std::printf("%s\n", json.dump().c_str());
  EMBER_TRY(write_out(arguments, all, json));
  return good ? 0 : 1;
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) {
  ember::Arguments arguments;
  CLI::App app("Facts at ten depths of long contexts, asked at once and after restores", "needle");
  app.add_option("--model", arguments.model, "Model folder with handbook.txt and facts.json")
      ->capture_default_str();
  app.add_option("--lengths", arguments.lengths, "Tokens of the contexts")->delimiter(',');
  app.add_option("--depths", arguments.depths, "Facts in a context")->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--contexts", arguments.contexts, "Contexts of each length")
      ->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--seed", arguments.seed, "Seed of the contexts")->capture_default_str();
  app.add_option("--caches", arguments.caches, "Precisions of the cache: bf16, fp8")
      ->delimiter(',')->check(CLI::IsMember({"bf16", "fp8"}));
  ember::add_output_flags(app, arguments.output, "tables and pictures");
  app.footer(ember::kNotes);
  return ember::run_bench(app, argc, argv, [&] { return ember::run(arguments); });
}
