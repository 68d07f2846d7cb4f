// Power cut, after: which bytes and names of the model a cut leaves. Pure, but for the last step.
//
// Journey    none; power_cut_file_system draws its after-states here
// Invariant  what was synced is kept byte for byte
// Threads    any
#pragma once

#include <string>

#include "tests/support/power_cut_file_system.h"

namespace ember::testing {

void apply_change(std::string& bytes, const CutNode::Change& change);
// Replaces what lies below `path` by one of the states that may be found after the cut.
void write_after_state(const CutNode& root, const std::string& path, uint64_t operations,
                       uint64_t seed, CutStyle style);

}  // namespace ember::testing
