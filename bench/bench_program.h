// Bench program: what every bench with flags does around its measuring.
//
// Journey    command line -> [bench_program] -> a bench -> standard output, files
// Invariant  what goes wrong is told on standard error, with the program's name, and exits with 1
// Threads    main
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/result.h"

namespace ember {

struct BenchOutput {
  std::string folder;  // --out; empty: no files
  bool json = false;   // --json
};
void add_output_flags(CLI::App& app, BenchOutput& output, const std::string& files);

// Nothing without a folder; else makes it and writes one file in it. Errors: kIo.
Status write_file(const BenchOutput& output, const std::string& name, const std::string& text);

// Reads the flags, then runs the bench; its exit code where it succeeds.
int run_bench(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& bench);

}  // namespace ember
