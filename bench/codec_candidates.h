// Codec candidates: the ways of coding a layer group that codec_bench compares.
//
// Journey    latent_samples -> [codec_candidates] -> codec_bench
// Invariant  decode gives back every bit; payloads need nothing but the shape
// Not here   what the store uses (store/codec.h): one of these
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/codec.h"

namespace ember {

struct CodecCandidate {
  std::string name;
  bool any_bytes = false;  // also for rows that are not bf16
  std::function<std::string(const GroupShape&, ConstBytes raw)> encode;
  std::function<bool(const GroupShape&, std::string_view payload, Bytes raw)> decode;
};

std::vector<CodecCandidate> codec_candidates();

}  // namespace ember
