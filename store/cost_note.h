// Cost note: what computing and restoring took in a namespace, as it was learned, so that the next
// process begins with it and a prediction needs no model.
//
// Journey    cost_model -> [cost_note] -> <store>/namespaces -> the next cost_model, explain
// Owns       the form of its file, drawn below
// Invariant  advice: one that is damaged, absent or of another version is nothing; coefficients
//            that were read are finite and not negative
// Threads    any; one writer, which holds the store
// Not here   what follows from them (engine/runtime/restore_plan.h)
//
//   namespaces/<namespace, 32 hexadecimal digits>.costs
//     magic "EMCO"            4
//     format version          2   kCostNoteVersion
//     tier count t            2
//     chunk tokens            8
//     context tokens          8   that the process had room for, prompt and answer together
//     bytes of a token        8   double; of latents
//     observations            8   of computing
//     learned at              8   microseconds since 1970
//     computing              24   doubles: microseconds a step, a token, a token and position
//     restoring            16 t   doubles, by tier: microseconds to start, a byte
//     XXH3-64 of all before   8
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/journey.h"

namespace ember {

inline constexpr uint32_t kCostNoteMagic = 0x4f434d45;  // "EMCO"
inline constexpr uint16_t kCostNoteVersion = 2;

struct CostNote {
  uint64_t chunk_tokens = 0;
  uint64_t context_tokens = 0;
  double token_bytes = 0;
  uint64_t observations = 0;  // prompts' steps that it was learned from
  int64_t unix_us = 0;        // when
  std::array<double, 3> compute{};
  std::array<std::array<double, 2>, kTierCount> restore{};
};

std::optional<CostNote> read_cost_note(const std::string& store, const NamespaceHash& name);
// In the place of what was there. Errors: kIo, kCapacity.
Status write_cost_note(const std::string& store, const NamespaceHash& name, const CostNote& note);

}  // namespace ember
