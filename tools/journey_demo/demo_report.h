// Demo report: the table that a person reads and the JSON that a program reads.
//
// Journey    demo_run -> [demo_report] -> standard output, a file
// Invariant  both show the same figures, and only figures of the run
// Threads    any; pure
#pragma once

#include <string>
#include <vector>

#include "tools/journey_demo/demo_run.h"

namespace ember {

std::string demo_table(const DemoResult& result, const std::vector<DemoCheck>& checks);
// The README's table of measured figures, with the machine they were measured on.
std::string demo_markdown(const DemoResult& result, const std::string& machine);
// "Intel(R) ... , 2 cores": of the machine that runs.
std::string this_machine();
std::string demo_json(const DemoResult& result, const std::vector<DemoCheck>& checks);

}  // namespace ember
