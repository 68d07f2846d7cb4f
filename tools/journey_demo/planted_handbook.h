// Planted handbook: the demo's system prompt with facts that nobody could know before.
//
// Journey    seed -> [planted_handbook] -> system prompt and questions of the demo
// Invariant  the same seed gives the same text and questions on every machine
// Threads    any; pure but for reading its two files
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/journey_demo/fact_book.h"

namespace ember {

struct PlantedHandbook {
  std::string text;
  std::vector<PlantedQuestion> questions;  // in the order of asking, not of planting
};

// Reads handbook.txt and facts.json in `model_folder`, and plants `facts` facts at random lines.
// Errors: kIo, kInvalidArgument naming the file.
Result<PlantedHandbook> plant_handbook(const std::string& model_folder, uint64_t seed,
                                       size_t facts);

}  // namespace ember
