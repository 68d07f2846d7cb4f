// emberkv_demo: plays the main job and prints what was measured; tools/demo builds and runs it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "tools/commands/exit_code.h"
#include "tools/journey_demo/demo_report.h"
#include "tools/journey_demo/demo_run.h"

namespace {

int play(const ember::DemoOptions& options, const std::string& json_path, bool markdown) {
  const ember::Result<ember::DemoResult> result = ember::run_demo(options);
  if (!result) {
    std::cerr << "emberkv_demo: " << result.error().message << std::endl;
    return ember::kExitFailed;
  }
  const std::vector<ember::DemoCheck> checks = ember::judge(*result);
  std::cout << ember::demo_table(*result, checks) << std::flush;
  if (markdown) {
    std::cout << '\n' << ember::demo_markdown(*result, ember::this_machine()) << std::flush;
  }
  if (!json_path.empty()) {
    std::ofstream file(json_path, std::ios::binary);
    file << ember::demo_json(*result, checks);
    file.close();
    if (!file) {
      std::cerr << "emberkv_demo: " << json_path << ": cannot be written" << std::endl;
      return ember::kExitFailed;
    }
  }
  const bool passed = std::all_of(checks.begin(), checks.end(),
                                  [](const ember::DemoCheck& check) { return check.passed; });
  return passed ? ember::kExitOk : ember::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The main job of EmberKV: a conversation that survives SIGKILL", "emberkv_demo");
  ember::DemoOptions options;
  options.seed = std::random_device{}();
  std::string json_path;
  app.add_option("--program", options.program, "The emberkv to run")->required();
  app.add_option("--model", options.model, "Folder of the demo model")->required();
  app.add_option("--seed", options.seed, "Which facts are planted (default: drawn and printed)");
  app.add_option("--json", json_path, "Write all figures to this file as well");
  bool markdown = false;
  app.add_flag("--markdown", markdown, "Print the README's table of figures as well");
  app.add_flag("--keep", options.keep, "Keep the temporary folder with its stores");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ember::kExitOk : ember::kExitUsage;
  }
  std::cout << "seed " << options.seed << std::endl;
  options.step = [](const std::string& what) { std::cout << "* " << what << std::endl; };
  return play(options, json_path, markdown);
}
