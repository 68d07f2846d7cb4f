// Fingerprint: the digest of all tensors in order of name, and what is remembered of it between
// runs.
//
// Journey    checkpoint -> [fingerprint] -> engine/model/identity
// Invariant  a remembered digest is used only while every file's size, inode, times and sampled
// bytes
//            are those it was made from; a damaged or foreign remembered file is ignored
// Not here   which file holds which tensor (checkpoint.h)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/mapped_file.h"
#include "engine/checkpoint/safetensors.h"
#include "prefix_index/block_hash.h"

namespace ember {

using NamedTensors = std::map<std::string, TensorView>;

// XXH3-128 over names, dtypes, shapes and bytes, each length-framed.
BlockHash hash_tensors(const NamedTensors& tensors, const std::function<void(double)>& progress);

// What the digest depends on, as text: `files` with their identity and samples, and the tensors'
// places.
std::string describe_files(const std::vector<std::shared_ptr<const MappedFile>>& files,
                           const NamedTensors& tensors);

// "<cache>/emberkv/fingerprints/<name of the folder>", or empty where the user has no cache
// directory.
std::string remembered_path(const std::string& folder);

// True and the digest, when `path` holds one that was made from `description`.
bool recall_fingerprint(const std::string& path, const std::string& description, BlockHash& digest);
// Written beside and renamed; a failure only means that the next start hashes again.
void remember_fingerprint(const std::string& path, const std::string& description,
                          const BlockHash& digest);

}  // namespace ember
