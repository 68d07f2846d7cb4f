// Namespace titles: what a person calls the namespaces of a store: the model's name, and where two
// of them have one model, what tells them apart.
//
// Journey    store_reader's notes -> [namespace_titles] -> du, tree
// Invariant  different namespaces have different titles
// Threads    the caller's
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/store_reader.h"

namespace ember {

// One title each, in their order. Errors: those of reading a note.
Result<std::vector<std::string>> namespace_titles(StoreReader& reader,
                                                  const std::vector<NamespaceHash>& names);

// The same of notes that were read. Same length as `names`.
std::vector<std::string> namespace_titles(const std::vector<NamespaceNote>& notes,
                                          const std::vector<NamespaceHash>& names);

}  // namespace ember
