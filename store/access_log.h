// Access log: which blocks requests used, and from which tier they came: input of a simulation.
//
// Journey    chains -> [access_log] -> <store>/access_log -> simulations
// Owns       the form of its files, drawn below, and their reading
// Invariant  a frame counts only whole and with its checksum; what follows a torn one is not read;
//            no length is trusted before it is bounded
// Threads    any; pure but for read_access_log
// Not here   writing it while requests run (store/cache/access_recorder.h)
//
// It holds no token: block hashes are keyed with the store's secret. It does tell when a tenant was
// active and which of its requests began alike; files are 0600, off by default.
//
//   file    magic "EMAL" 4, version 4, then frames
//   frame   payload length 4, payload, XXH3-64 of the payload 8
//   payload                        bytes
//     time (us since 1970)           8
//     prompt and answer tokens       4   committed when the request ended
//     prompt tokens                  4   of those, what was looked up
//     restored tokens                4 for each tier, device first
//     scope length s                 2, then s bytes ("shared" or the tenant)
//     conversation length c          2   then c bytes (its id, or none)
//     entries back b                 2   0: none; else the b-th before begins with the same
//     shared blocks                  4   how many of them
//     own blocks n                   4, then 16 n: their hashes, in order
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/journey.h"

namespace ember {

struct AccessEntry {
  int64_t unix_us = 0;
  uint32_t tokens = 0;         // of prompt and answer
  uint32_t prompt_tokens = 0;  // the rest was computed token by token, and never looked up
  std::array<uint32_t, kTierCount> restored_tokens{};
  std::string scope;
  std::string conversation;       // its id; empty: of none
  std::vector<BlockHash> blocks;  // full blocks of the chain, root first
  friend bool operator==(const AccessEntry&, const AccessEntry&) = default;
};

// Blocks of one entry; a longer chain is logged by its first ones.
inline constexpr size_t kMostAccessBlocks = 1u << 14;

struct UnfinishedAccessLog;

// Writes and reads frames in order: both sides remember the latest entries, so that what requests
// have in common is written once.
class AccessFrames {
 public:
  static std::string header();
  // The entry's frame.
  std::string encode(AccessEntry entry);
  // The entries of a file's bytes, up to the first frame that is not whole and right.
  // Errors: kCorruption (not a log), kUnsupported (another version).
  static Result<std::vector<AccessEntry>> decode(std::string_view bytes);
  // The same, one by one: what they share is copied for each, so all together may be large.
  using Visitor = std::function<void(AccessEntry)>;
  static Status decode(std::string_view bytes, const Visitor& visit);
  // A file as a later process goes on with it; nothing: it is no log of this version.
  static std::optional<UnfinishedAccessLog> go_on(const std::string& path);

 private:
  friend Status visit_access_log(const std::string& store, const Visitor& visit);
  static constexpr size_t kWindow = 64;
  // Exactly so many bytes more of a file, or false: there are fewer.
  using Source = std::function<bool(char* to, size_t bytes)>;
  static Status decode_from(const Source& source, const Visitor& visit,
                            UnfinishedAccessLog& read);
  void remember(const std::vector<BlockHash>& blocks);
  static bool decode_payload(std::string_view payload, AccessFrames& earlier, AccessEntry& entry);

  std::deque<std::vector<BlockHash>> window_;  // the latest at the back
};

struct UnfinishedAccessLog {
  AccessFrames frames;  // that know the file's latest entries
  uint64_t bytes = 0;   // up to the first frame that is not whole and right
};

// Everything that is in a store's log, the oldest first, also while its holder writes. A store
// without one gives nothing. Memory of visiting: a frame and the latest entries.
// Errors: kIo; as decode.
Result<std::vector<AccessEntry>> read_access_log(const std::string& store);
Status visit_access_log(const std::string& store, const AccessFrames::Visitor& visit);

// The log's folder, and its two files: the log is a ring of these.
std::string access_log_folder(const std::string& store);
inline constexpr const char* kAccessLogNow = "now";
inline constexpr const char* kAccessLogBefore = "before";

}  // namespace ember
