// emberkv_make_model: writes a random model of given dimensions, for benches and experiments.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <string>

#include "tools/commands/exit_code.h"
#include "tools/make_random_model.h"

int main(int argc, char** argv) {
  CLI::App app("Writes a checkpoint with random weights, of the dimensions of a config.json",
               "emberkv_make_model");
  std::string config_folder;
  std::string folder;
  uint32_t routed_experts = 0;
  uint64_t seed = 1;
  bool fp32 = false;
  app.add_option("--out", folder, "Folder to write")->required()->type_name("DIR");
  app.add_option("--config", config_folder, "Folder with the config.json to follow")
      ->required()
      ->type_name("DIR");
  app.add_option("--routed-experts", routed_experts,
                 "Routed experts, where not as many as the config says")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "Seed of the weights")->capture_default_str();
  app.add_flag("--fp32", fp32, "Matrices in fp32 instead of bf16");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ember::kExitOk : ember::kExitUsage;
  }
  const ember::Status status = [&]() -> ember::Status {
    EMBER_ASSIGN(ember::ModelConfig config, ember::load_model_config(config_folder));
    if (routed_experts > 0) config.routed_experts = routed_experts;
    return ember::make_random_model(config, seed, fp32 ? ember::DType::kF32 : ember::DType::kBf16,
                                    folder);
  }();
  if (!status.ok()) {
    std::cerr << "emberkv_make_model: " << status.error().message << std::endl;
    return ember::kExitFailed;
  }
  return ember::kExitOk;
}
