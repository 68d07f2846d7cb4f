// Scrub mark: how far the scrubber has come, so that a store that is opened for minutes only is
// gone over whole all the same.
//
// Journey    scrubber -> [scrub_mark] -> <store>/SCRUB -> scrubber
// Invariant  a damaged or missing mark means that a pass begins anew, nothing else
// Threads    any; pure but for the file
//
//   SCRUB                 bytes
//     magic "EMBC"            4
//     format version          2   kScrubMarkVersion
//     flags                   2   bit 0: a pass is under way; bit 1: `after` is set
//     after                  16   the hash of the last block that was proven in it
//     last pass ended at      8   microseconds since 1970; 0: none has
//     passes                  8   ended since the store was made
//     XXH3-64                 8   of all before
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "prefix_index/block_hash.h"

namespace ember {

inline constexpr uint32_t kScrubMarkMagic = 0x43424d45;  // "EMBC"
inline constexpr uint16_t kScrubMarkVersion = 1;

struct ScrubMark {
  bool in_pass = false;
  std::optional<BlockHash> after;  // nothing: the pass is at its beginning
  int64_t last_ended_unix_us = 0;
  uint64_t passes = 0;
  friend bool operator==(const ScrubMark&, const ScrubMark&) = default;
};

std::string encode_scrub_mark(const ScrubMark& mark);
std::optional<ScrubMark> decode_scrub_mark(std::string_view bytes);

ScrubMark read_scrub_mark(const std::string& path);
Status write_scrub_mark(const std::string& path, const ScrubMark& mark);

}  // namespace ember
