// emberkv_make_model: writes a small random model, for benches and for trying other dimensions.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <string>

#include "tools/commands/exit_code.h"
#include "tools/make_random_model.h"

int main(int argc, char** argv) {
  CLI::App app("Writes a random model of two layers with DeepSeek-V2-Lite's dimensions",
               "emberkv_make_model");
  std::string folder;
  uint32_t routed_experts = 8;
  uint64_t seed = 1;
  bool fp32 = false;
  app.add_option("--out", folder, "Folder to write")->required()->type_name("DIR");
  app.add_option("--routed-experts", routed_experts, "Experts of the second layer")
      ->capture_default_str()
      ->check(CLI::Range(6, 64));
  app.add_option("--seed", seed, "Seed of the weights")->capture_default_str();
  app.add_flag("--fp32", fp32, "Matrices in fp32 instead of bf16");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ember::kExitOk : ember::kExitUsage;
  }
  const ember::Status status =
      ember::make_random_model(ember::two_layers_of_v2_lite(routed_experts), seed,
                               fp32 ? ember::DType::kF32 : ember::DType::kBf16, folder);
  if (!status.ok()) {
    std::cerr << "emberkv_make_model: " << status.error().message << std::endl;
    return ember::kExitFailed;
  }
  return ember::kExitOk;
}
