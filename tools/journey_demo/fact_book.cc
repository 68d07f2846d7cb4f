// Reads handbook.txt and facts.json, and fills the forms of the latter.
#include "tools/journey_demo/fact_book.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "base/check.h"

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

}  // namespace

Result<FactBook> FactBook::load(const std::string& model_folder) {
  EMBER_ASSIGN(const std::string handbook, read_file(model_folder + "/handbook.txt"));
  const std::string facts_path = model_folder + "/facts.json";
  EMBER_ASSIGN(const std::string facts_text, read_file(facts_path));
  FactBook book;
  std::istringstream stream(handbook);
  for (std::string line; std::getline(stream, line);) book.lines_.push_back(line);
  if (book.lines_.size() < 2) {
    return Error{ErrorCode::kInvalidArgument,
                 model_folder + "/handbook.txt: " + std::to_string(book.lines_.size()) +
                     " lines, expected an instruction and what it is about"};
  }
  try {
    const Json json = Json::parse(facts_text);
    book.sentence_form_ = json.at("sentence").get<std::string>();
    book.question_form_ = json.at("question").get<std::string>();
    book.answer_form_ = json.at("answer").get<std::string>();
    for (const auto& [name, attributes] : json.at("attributes").items()) {
      Kind& kind = book.kinds_[name];
      kind.entities = json.at("entities").at(name).get<Values>();
      for (const auto& [attribute, values] : attributes.items()) {
        kind.attributes.emplace_back(attribute, values.get<Values>());
        if (values.empty()) throw std::invalid_argument(attribute + " has no values");
      }
      if (kind.entities.empty() || kind.attributes.empty()) {
        throw std::invalid_argument(name + " has no entities or no attributes");
      }
    }
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInvalidArgument, facts_path + ": " + error.what()};
  }
  if (book.kinds_.empty()) {
    return Error{ErrorCode::kInvalidArgument, facts_path + ": no attributes, expected some"};
  }
  return book;
}

size_t FactBook::entities() const {
  size_t count = 0;
  for (const auto& [name, kind] : kinds_) count += kind.entities.size();
  return count;
}

PlantedFact FactBook::draw(Prng& prng, std::set<std::string>& used_entities) const {
  EMBER_CHECK(used_entities.size() < entities(), "an entity is left to draw");
  while (true) {
    auto at = kinds_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(prng.below(kinds_.size())));
    const Kind& kind = at->second;
    const auto& [attribute, values] = kind.attributes[prng.below(kind.attributes.size())];
    const std::string& entity = kind.entities[prng.below(kind.entities.size())];
    const std::string& value = values[prng.below(values.size())];
    if (!used_entities.insert(entity).second) continue;
    return {fill_form(sentence_form_, attribute, entity, value),
            fill_form(answer_form_, attribute, entity, value),
            {fill_form(question_form_, attribute, entity, value), value}};
  }
}

}  // namespace ember
