// Draws facts from the fact book and puts them between the handbook's lines.
#include "tools/journey_demo/planted_handbook.h"

#include <set>
#include <utility>

#include "base/prng.h"

namespace ember {

Result<PlantedHandbook> plant_handbook(const std::string& model_folder, uint64_t seed,
                                       size_t facts) {
  EMBER_ASSIGN(const FactBook book, FactBook::load(model_folder));
  std::vector<std::string> lines = book.lines();
  PlantedHandbook planted;
  Prng prng(seed);
  std::set<std::string> used_entities;
  for (size_t i = 0; i < facts; ++i) {
    PlantedFact fact = book.draw(prng, used_entities);
    // Line 0 is the instruction and stays first.
    const size_t place = 1 + prng.below(lines.size());
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), std::move(fact.sentence));
    const size_t turn = prng.below(planted.questions.size() + 1);
    planted.questions.insert(planted.questions.begin() + static_cast<std::ptrdiff_t>(turn),
                             std::move(fact.question));
  }
  for (const std::string& line : lines) {
    if (!planted.text.empty()) planted.text += '\n';
    planted.text += line;
  }
  return planted;
}

}  // namespace ember
