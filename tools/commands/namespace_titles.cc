// Comparing each note with the others of its model.
#include "tools/commands/namespace_titles.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "tools/commands/text_form.h"

namespace ember {
namespace {

constexpr size_t kMostValueColumns = 16;  // a digest's first digits tell it from another
constexpr size_t kNameDigits = 12;

std::string_view value_of(const NamespaceNote& note, const std::string& field) {
  const auto found = std::find_if(note.fields.begin(), note.fields.end(),
                                  [&field](const auto& pair) { return pair.first == field; });
  return found == note.fields.end() ? std::string_view() : std::string_view(found->second);
}

// "cache bf16, weights int8": those of its fields that another one of its model has otherwise.
std::string differences(const NamespaceNote& note, const std::vector<NamespaceNote>& notes) {
  std::string text;
  for (const auto& [field, value] : note.fields) {
    const bool differs =
        std::any_of(notes.begin(), notes.end(), [&, &field = field, &value = value](const auto& n) {
          return n.model == note.model && value_of(n, field) != value;
        });
    if (differs) text += ", " + field + " " + one_line(value, kMostValueColumns);
  }
  return text;
}

}  // namespace

std::vector<std::string> namespace_titles(const std::vector<NamespaceNote>& notes,
                                          const std::vector<NamespaceHash>& names) {
  std::vector<std::string> titles;
  std::multiset<std::string> seen;
  for (const NamespaceNote& note : notes) {
    titles.push_back(note.model + differences(note, notes));
    seen.insert(titles.back());
  }
  for (size_t i = 0; i < titles.size(); ++i) {
    const bool alone = seen.count(titles[i]) == 1 && !titles[i].empty();
    if (alone) continue;
    const std::string digits = names[i].hex().substr(0, kNameDigits);
    titles[i] = titles[i].empty() ? digits : titles[i] + ", " + digits;
  }
  return titles;
}

Result<std::vector<std::string>> namespace_titles(StoreReader& reader,
                                                  const std::vector<NamespaceHash>& names) {
  std::vector<NamespaceNote> notes;
  for (const NamespaceHash& name : names) {
    EMBER_ASSIGN(NamespaceNote note, reader.name_space(name));
    notes.push_back(std::move(note));
  }
  return namespace_titles(notes, names);
}

}  // namespace ember
