// Store scan: what lies in the folder of a closed disk tier, looked at past the disk tier.
#pragma once

#include <string>
#include <vector>

namespace ember::testing {

// Files that no manifest names, data of epochs without a row, rows that say less than there is: one
// line for each. Empty: every byte is accounted for.
std::vector<std::string> orphans_of(const std::string& blocks_folder);

}  // namespace ember::testing
