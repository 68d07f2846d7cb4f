// Made transfer: a small export from a seed, its entries by hand, and what is read of one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "store/transfer/transfer_reader.h"

namespace ember::testing {

struct MadeTransfer {
  TransferManifest manifest;
  std::vector<TransferItem> items;  // without the end
};

// Three layers, blocks of eight tokens, rows of 16 values.
KvLayout made_layout();
// Blocks and tails in `shared` and under it a tenant's, two conversations, a tokenizer.
MadeTransfer made_transfer(uint64_t seed, size_t blocks = 12);
// A block of `made_layout` with latents from `prng`, coded; its hashes are left empty.
TransferItem made_block(Prng& prng, const NamespaceHash& name_space, const std::string& scope,
                        uint32_t position, size_t tokens);
std::string written(const MadeTransfer& made);

// Gives `bytes`, which outlive it, in pieces of at most so many.
ByteSource source_of(const std::string& bytes, size_t most_at_once);

struct Read {
  TransferManifest manifest;
  std::vector<TransferItem> items;
};
// All of it, in pieces of `most` bytes.
Result<Read> read_all(const std::string& bytes, size_t most = 4096);
// Whether both hold the same, item by item.
bool same(const MadeTransfer& made, const Read& read);

// The tar taken apart, and put together again as it stands.
using Entries = std::vector<std::pair<std::string, std::string>>;
Entries entries_of(const std::string& bytes);
std::string tar_of(const Entries& entries);
// With an end that fits what stands before it.
std::string sealed(Entries entries);

}  // namespace ember::testing
