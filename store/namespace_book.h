// Namespace book: what a store knows of each of its namespaces: the fields of its identity, so that
// a miss can name the one that differs, and its tokenizer, so that blocks can be shown as text.
//
// Journey    opening an engine -> [namespace_book] -> <store>/namespaces -> ls, show, explain
// Owns       the form of its files, drawn below
// Invariant  written once for a namespace, a tokenizer once for a store; never more than its share;
//            a damaged file of its own costs the text, never a block
// Threads    any; one writer, which holds the store
// Not here   the hash of the fields (engine/model/identity.h), decoding (engine/text/tokenizer.h)
//
//   namespaces/<namespace, 32 hexadecimal digits>
//     magic "EMNS"            4
//     format version          2   kNamespaceVersion
//     field count n           2
//     tokenizer digest       16   zeros: none is kept
//     model                       length 4, then its bytes
//     n fields                    each: length 4 and name, length 4 and value
//     XXH3-64 of all before   8
//   namespaces/<tokenizer digest>/tokenizer.json.gz, tokenizer_config.json
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"

namespace ember {

inline constexpr uint32_t kNamespaceMagic = 0x534e4d45;  // "EMNS"
inline constexpr uint16_t kNamespaceVersion = 1;

// What a store knows of one of its namespaces.
struct NamespaceNote {
  // Of the identity, in order: "weights", "layout", ...; empty: nothing was written down.
  std::vector<std::pair<std::string, std::string>> fields;
  std::string model;             // the name of the folder that it was made from
  std::string tokenizer_folder;  // holds tokenizer.json, perhaps zipped; empty: none is kept
};

// What an engine tells of its namespace.
struct NamespaceEntry {
  std::vector<std::pair<std::string, std::string>> fields;
  std::string model;
  BlockHash tokenizer_digest;  // of the files that it was made from; zeros: there is none
  // Names and bytes of the files to keep; asked for only where they are not kept already.
  using Files = std::vector<std::pair<std::string, std::string>>;
  std::function<Result<Files>()> tokenizer_files;
};

// An absent note is an empty one. Errors: kCorruption, kUnsupported (another version), kIo.
Result<NamespaceNote> read_namespace_note(const std::string& store, const NamespaceHash& name);

// Writes down what is not there yet, the note first. Errors: those of `tokenizer_files`; kIo;
// kCapacity (a full disk, or it would pass `limit_bytes` with what is there).
Status write_namespace_note(const std::string& store, const NamespaceHash& name,
                            const NamespaceEntry& entry, uint64_t limit_bytes);

}  // namespace ember
