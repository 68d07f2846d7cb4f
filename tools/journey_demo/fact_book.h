// Fact book: what a model's handbook.txt and facts.json hold, and facts drawn from it.
//
// Journey    model folder, seed -> [fact_book] -> planted_handbook, needle
// Invariant  the same seed draws the same facts on every machine
// Threads    any; immutable after loading
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/result.h"

namespace ember {

struct PlantedQuestion {
  std::string question;
  std::string value;  // right: it stands in the answer
};

struct PlantedFact {
  std::string sentence;
  std::string answer;
  PlantedQuestion question;
};

class FactBook {
 public:
  // Errors: kIo, kInvalidArgument naming the file.
  static Result<FactBook> load(const std::string& model_folder);

  // The handbook's lines; the first is the instruction.
  const std::vector<std::string>& lines() const { return lines_; }
  // A fact of an entity that is not among the used ones; it is one of them afterwards.
  PlantedFact draw(Prng& prng, std::set<std::string>& used_entities) const;
  // How many facts can be drawn before the entities are used up.
  size_t entities() const;

 private:
  using Values = std::vector<std::string>;
  struct Kind {
    Values entities;
    std::vector<std::pair<std::string, Values>> attributes;
  };
  std::vector<std::string> lines_;
  std::string sentence_form_, question_form_, answer_form_;
  std::map<std::string, Kind> kinds_;
};

}  // namespace ember
