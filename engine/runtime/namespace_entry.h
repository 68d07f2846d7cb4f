// Namespace entry: what an engine tells a store of its namespace: identity and tokenizer.
//
// Journey    identity, the model's folder -> [namespace_entry] -> block_cache -> namespace_book
// Invariant  the tokenizer's files are read and packed only where the store keeps none of the
//            namespace
// Threads    any
#pragma once

#include <string>

#include "engine/model/identity.h"
#include "store/namespace_book.h"

namespace ember {

// For the store at `store_path`, which need not be there.
NamespaceEntry make_namespace_entry(const std::string& model_path, const Identity& identity,
                                    const std::string& store_path);

}  // namespace ember
