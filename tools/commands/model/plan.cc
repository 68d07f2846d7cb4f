// plan: parameters, bytes of weights and cache by precision, and a table of what fits.
#include "tools/commands/model/plan.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/bytes.h"
#include "engine/model/memory_plan.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kFirstTokens = 1024;

struct NamedPrecision {
  const char* name;
  WeightPrecision precision;
};
constexpr std::array<NamedPrecision, 3> kPrecisions = {{{"bf16", WeightPrecision::kBf16},
                                                        {"fp8", WeightPrecision::kFp8},
                                                        {"int8", WeightPrecision::kInt8}}};
constexpr std::array<const char*, 2> kCaches = {"bf16", "fp8"};

uint64_t machine_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
}

// 671026419200 as "671,026,419,200".
std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string ratio(uint64_t of, uint64_t by) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(of) / static_cast<double>(by));
  return text;
}

struct Plan {
  std::string path;
  ModelConfig config;
  ParameterCount parameters;
  std::array<WeightBytes, 3> weights;
  TokenBytes token;
  uint64_t memory_bytes = 0;
  std::vector<uint64_t> lengths;  // tokens of a sequence, ascending

  uint64_t cache_bytes(size_t cache) const { return cache == 0 ? token.bf16 : token.fp8; }
  uint64_t fits(size_t precision, size_t cache, uint64_t tokens) const {
    return fitting_sequences(
        {memory_bytes, weights[precision].memory, cache_bytes(cache), tokens, 64});
  }
};

Result<Plan> make_plan(const PlanOptions& options) {
  namespace fs = std::filesystem;
  Plan plan;
  plan.path = options.config;
  std::error_code failed;
  if (fs::is_directory(plan.path, failed))
    plan.path = (fs::path(plan.path) / "config.json").string();
  EMBER_ASSIGN(plan.config, load_model_config_file(plan.path));
  plan.parameters = count_parameters(plan.config);
  for (size_t i = 0; i < kPrecisions.size(); ++i) {
    plan.weights[i] = weight_bytes(plan.config, kPrecisions[i].precision);
  }
  plan.token = token_bytes(plan.config);
  plan.memory_bytes = options.memory_bytes > 0 ? options.memory_bytes : machine_bytes();
  for (uint64_t tokens = kFirstTokens; tokens < plan.config.max_positions; tokens *= 4) {
    plan.lengths.push_back(tokens);
  }
  plan.lengths.push_back(plan.config.max_positions);
  return plan;
}

void print_json(const Plan& plan, std::ostream& out) {
  Json json = {{"config", plan.path},
               {"model_type", plan.config.model_type},
               {"layers", plan.config.layers},
               {"parameters", plan.parameters.total},
               {"active_parameters", plan.parameters.active}};
  for (size_t i = 0; i < kPrecisions.size(); ++i) {
    json["weights"][kPrecisions[i].name] = {{"stored_bytes", plan.weights[i].stored},
                                            {"memory_bytes", plan.weights[i].memory}};
  }
  json["token_bytes"] = {
      {"bf16", plan.token.bf16}, {"fp8", plan.token.fp8}, {"expanded_bf16", plan.token.expanded}};
  json["memory_bytes"] = plan.memory_bytes;
  json["fits"] = Json::array();
  for (const uint64_t tokens : plan.lengths) {
    for (size_t i = 0; i < kPrecisions.size(); ++i) {
      for (size_t c = 0; c < kCaches.size(); ++c) {
        json["fits"].push_back({{"weights", kPrecisions[i].name},
                                {"cache", kCaches[c]},
                                {"tokens", tokens},
                                {"sequences", plan.fits(i, c, tokens)}});
      }
    }
  }
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

template <typename... Values>
void print_line(std::ostream& out, const char* format, Values... values) {
  char line[160];
  std::snprintf(line, sizeof line, format, values...);
  out << line << '\n';
}

void print_table(const Plan& plan, std::ostream& out) {
  out << "\nsequences that fit at once in " << human_bytes(plan.memory_bytes)
      << " (weights / cache):\n";
  std::string header = "        tokens";
  for (const NamedPrecision& precision : kPrecisions) {
    for (const char* cache : kCaches) {
      char cell[32];
      std::snprintf(cell, sizeof cell, "  %11s",
                    (std::string(precision.name) + "/" + cache).c_str());
      header += cell;
    }
  }
  out << header << '\n';
  for (const uint64_t tokens : plan.lengths) {
    char cell[32];
    std::snprintf(cell, sizeof cell, "  %12s", grouped(tokens).c_str());
    std::string line = cell;
    for (size_t i = 0; i < kPrecisions.size(); ++i) {
      for (size_t c = 0; c < kCaches.size(); ++c) {
        const uint64_t fits = plan.fits(i, c, tokens);
        std::snprintf(cell, sizeof cell, "  %11s", fits == 0 ? "-" : grouped(fits).c_str());
        line += cell;
      }
    }
    out << line << '\n';
  }
}

void print_text(const Plan& plan, std::ostream& out) {
  const ModelConfig& c = plan.config;
  out << "model       " << c.model_type << ", " << c.layers << " layers, " << c.heads << " heads";
  if (c.routed_experts > 0) {
    out << ", " << c.routed_experts << " experts, " << c.experts_per_token << " of them a token";
  }
  out << "\nparameters  " << grouped(plan.parameters.total) << ", of which a token uses "
      << grouped(plan.parameters.active) << '\n';
  print_line(out, "\n%-10s  %22s  %22s", "weights", "stored", "in memory");
  for (size_t i = 0; i < kPrecisions.size(); ++i) {
    const bool made = kPrecisions[i].precision == WeightPrecision::kInt8;
    print_line(out, "  %-8s  %22s  %22s", kPrecisions[i].name,
               made ? "made at load" : human_bytes(plan.weights[i].stored).c_str(),
               human_bytes(plan.weights[i].memory).c_str());
  }
  print_line(out, "\n%-10s  %22s  %22s", "cache", "bytes a token", "less than keys, values");
  for (size_t i = 0; i < kCaches.size(); ++i) {
    print_line(out, "  %-8s  %22s  %20s x", kCaches[i], grouped(plan.cache_bytes(i)).c_str(),
               ratio(plan.token.expanded, plan.cache_bytes(i)).c_str());
  }
  print_line(out, "  %-8s  %22s", "expanded", grouped(plan.token.expanded).c_str());
  print_table(plan, out);
  out << "Activations and code come on top.\n" << std::flush;
}

}  // namespace

Status run_plan(const PlanOptions& options, std::ostream& out) {
  EMBER_ASSIGN(const Plan plan, make_plan(options));
  options.json ? print_json(plan, out) : print_text(plan, out);
  return {};
}

}  // namespace ember
