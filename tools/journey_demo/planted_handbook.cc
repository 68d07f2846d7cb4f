// Draws facts from facts.json and puts them between the lines of handbook.txt.
#include "tools/journey_demo/planted_handbook.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/prng.h"

namespace ember {
namespace {

using Json = nlohmann::json;

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{ErrorCode::kIo, path + ": cannot be read"};
  return text.str();
}

std::string fill_form(std::string form, const std::string& attribute, const std::string& entity,
                      const std::string& value) {
  const std::pair<std::string_view, const std::string*> places[] = {
      {"{attribute}", &attribute}, {"{entity}", &entity}, {"{value}", &value}};
  for (const auto& [name, text] : places) {
    const size_t at = form.find(name);
    if (at != std::string::npos) form.replace(at, name.size(), *text);
  }
  return form;
}

struct Fact {
  std::string sentence;
  PlantedQuestion question;
};

Fact draw_fact(const Json& facts, Prng& prng, std::set<std::string>& used_entities) {
  const Json& kinds = facts.at("attributes");
  while (true) {
    auto kind = kinds.begin();
    std::advance(kind, static_cast<std::ptrdiff_t>(prng.below(kinds.size())));
    auto attribute = kind.value().begin();
    std::advance(attribute, static_cast<std::ptrdiff_t>(prng.below(kind.value().size())));
    const Json& entities = facts.at("entities").at(kind.key());
    const std::string entity = entities.at(prng.below(entities.size())).get<std::string>();
    const std::string value =
        attribute.value().at(prng.below(attribute.value().size())).get<std::string>();
    if (!used_entities.insert(entity).second) continue;
    const auto form = [&](const char* name) {
      return fill_form(facts.at(name).get<std::string>(), attribute.key(), entity, value);
    };
    return {form("sentence"), {form("question"), value}};
  }
}

}  // namespace

Result<PlantedHandbook> plant_handbook(const std::string& model_folder, uint64_t seed,
                                       size_t facts) {
  EMBER_ASSIGN(const std::string handbook, read_file(model_folder + "/handbook.txt"));
  EMBER_ASSIGN(const std::string facts_text, read_file(model_folder + "/facts.json"));
  std::vector<std::string> lines;
  std::istringstream stream(handbook);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 model_folder + "/handbook.txt: empty, expected lines"};
  }
  PlantedHandbook planted;
  Prng prng(seed);
  try {
    const Json json = Json::parse(facts_text);
    std::set<std::string> used_entities;
    for (size_t i = 0; i < facts; ++i) {
      Fact fact = draw_fact(json, prng, used_entities);
      // Line 0 is the instruction and stays first.
      const size_t place = 1 + prng.below(lines.size());
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), std::move(fact.sentence));
      const size_t turn = prng.below(planted.questions.size() + 1);
      planted.questions.insert(planted.questions.begin() + static_cast<std::ptrdiff_t>(turn),
                               std::move(fact.question));
    }
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kInvalidArgument, model_folder + "/facts.json: " + error.what()};
  }
  for (const std::string& line : lines) {
    if (!planted.text.empty()) planted.text += '\n';
    planted.text += line;
  }
  return planted;
}

}  // namespace ember
