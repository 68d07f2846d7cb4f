// Flags, files and failures of a bench.
#include "bench/bench_program.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ember {
namespace {

int fail(const CLI::App& app, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), why.c_str());
  return 1;
}

}  // namespace

void add_output_flags(CLI::App& app, BenchOutput& output, const std::string& files) {
  app.add_option("--out", output.folder, "Folder for " + files);
  app.add_flag("--json", output.json, "One line of JSON instead of tables");
}

Status write_file(const BenchOutput& output, const std::string& name, const std::string& text) {
  if (output.folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(output.folder, error);
  const std::string path = output.folder + "/" + name;
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) return {ErrorCode::kIo, path + ": cannot be written"};
  return {};
}

int run_bench(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& bench) {
  CLI11_PARSE(app, argc, argv);
  try {
    const Result<int> code = bench();
    return code.ok() ? *code : fail(app, code.error().message);
  } catch (const std::exception& error) {
    return fail(app, error.what());
  }
}

}  // namespace ember
