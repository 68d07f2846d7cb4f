// Comparing each note with the others of its model.
#include "tools/commands/look/namespace_titles.h"

#include <algorithm>
#include <iterator>
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

// Of a long value its beginning, or its end where another value begins alike.
std::string shown(const std::string& field, std::string_view value,
                  const std::vector<NamespaceNote>& notes) {
  const std::string front = one_line(value, kMostValueColumns);
  const bool tells = std::none_of(notes.begin(), notes.end(), [&](const NamespaceNote& note) {
    const std::string_view other = value_of(note, field);
    return other != value && one_line(other, kMostValueColumns) == front;
  });
  return tells ? front : end_of_line(value, kMostValueColumns);
}

// Those of its fields that others of its model have otherwise, the short ones first: what a person
// chose is a word, what follows from it may be a sentence.
std::vector<std::string> telling_fields(const NamespaceNote& note,
                                        const std::vector<NamespaceNote>& alike) {
  std::vector<std::string> fields;
  for (const auto& [field, value] : note.fields) {
    const bool differs = std::any_of(
        alike.begin(), alike.end(), [&, &field = field, &value = value](const NamespaceNote& one) {
          return value_of(one, field) != value;
        });
    if (differs) fields.push_back(field);
  }
  std::stable_partition(fields.begin(), fields.end(), [&alike](const std::string& field) {
    return std::all_of(alike.begin(), alike.end(), [&field](const NamespaceNote& one) {
      return columns_of(value_of(one, field)) <= kMostValueColumns;
    });
  });
  return fields;
}

// "cache bf16, weights int8": as few fields as tell it from all others of its model.
std::string differences(const NamespaceNote& note, const std::vector<NamespaceNote>& notes) {
  std::vector<NamespaceNote> alike;  // itself too
  std::copy_if(notes.begin(), notes.end(), std::back_inserter(alike),
               [&note](const NamespaceNote& other) { return other.model == note.model; });
  std::string text;
  for (const std::string& field : telling_fields(note, alike)) {
    const std::string_view value = value_of(note, field);
    const std::string form = shown(field, value, notes);
    const size_t told_apart = std::erase_if(alike, [&](const NamespaceNote& other) {
      return value_of(other, field) != value;
    });
    if (told_apart > 0) text += ", " + field + " " + form;
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
