// Needle context: a handbook of a wished length with facts at chosen depths.
//
// Journey    fact book, seed -> [needle_context] -> needle
// Invariant  pure: the same seed and counting give the same text
// Threads    any
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tools/journey_demo/fact_book.h"

namespace ember {

struct NeedleContext {
  std::string text;
  std::vector<PlantedFact> facts;  // one for each depth, from the front on
};

// A handbook of just under `tokens` tokens as `count` counts a line. Among its lines stand `depths`
// facts: fact i where (i + 1/2) / depths of the other lines are before it. The other lines are the
// handbook's, drawn again and again, and by turns other facts, as far as there are entities.
// Errors: kInvalidArgument when the facts alone are longer.
Result<NeedleContext> plant_needles(const FactBook& book, size_t tokens, size_t depths,
                                    uint64_t seed,
                                    const std::function<size_t(std::string_view)>& count);

}  // namespace ember
