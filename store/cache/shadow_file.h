// Shadow file: the form of what the disk's duel is to know again after a restart, and its reading
// and writing.
//
// Journey    shadow_keeper -> [shadow_file] -> <store>/SHADOWS -> shadow_keeper
// Invariant  a frame counts only whole, with its checksum, in its place; a file that is damaged,
//            missing or of another version costs hits, nothing else
// Threads    any; a writer is one task's at a time
// Not here   when it is written and read (store/cache/shadow_keeper.h)
//
// It names blocks by eight bytes of their hash, which is keyed with the store's secret. In an
// encrypted store the head and each frame are sealed (store/disk/value_sealer.h).
//
//   SHADOWS                 bytes
//     head                     56
//       magic "EMBD"            4
//       format version          2   kShadowFileVersion
//       policy, leader          1 each, as EvictionPolicy
//       written at              8   microseconds since 1970
//       limit                   8   of the disk, in bytes
//       capacity                8   blocks that it held when it was full; 0: it never was
//       scores                  8   of leaf-LRU, then of S3-FIFO: IEEE doubles
//                               8
//       XXH3-64                 8   of all before
//     frames, each of kMarksPerFrame marks but the last
//       number                  4   from 0 on
//       marks n                 4
//       marks                  9 n  queue in the low four bits (0 leaf-LRU, 1 small, 2 main,
//                                   3 ghosts), count in the high four; then the id 8
//       XXH3-64                 8   of all before in the frame
//
// Marks are in the order of the queues, the oldest of each first; the last frame is read first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prefix_index/duel.h"
#include "store/disk/value_sealer.h"

namespace ember {

inline constexpr uint32_t kShadowFileMagic = 0x44424d45;  // "EMBD"
inline constexpr uint16_t kShadowFileVersion = 1;
inline constexpr size_t kShadowHeadBytes = 4 + 2 + 1 + 1 + 8 + 8 + 8 + 8 + 8 + 8;
static_assert(kShadowHeadBytes == 56);
inline constexpr size_t kShadowMarkBytes = 1 + 8;
inline constexpr size_t kShadowFrameExtraBytes = 4 + 4 + 8;
inline constexpr size_t kMarksPerFrame = 4096;

struct ShadowHead {
  EvictionPolicy policy = EvictionPolicy::kAuto;
  EvictionPolicy leader = EvictionPolicy::kLeafLru;
  int64_t written_unix_us = 0;
  uint64_t limit_bytes = 0;
  uint64_t capacity_blocks = 0;
  Duel::Scores scores;
};

std::string encode_shadow_head(const ShadowHead& head);
std::optional<ShadowHead> decode_shadow_head(std::string_view bytes);
std::string encode_shadow_frame(uint32_t number, std::span<const ShadowMark> marks);
std::optional<std::vector<ShadowMark>> decode_shadow_frame(uint32_t number,
                                                           std::string_view bytes);

// Where a store keeps it, and with what it is sealed (null: it lies in clear).
struct ShadowPlace {
  std::string path;
  std::shared_ptr<ValueSealer> sealer;
};
// Nothing where there is no file that can be used.
std::optional<ShadowHead> read_shadow_head(const ShadowPlace& place);
uint32_t shadow_frames(const ShadowPlace& place);
std::optional<std::vector<ShadowMark>> read_shadow_frame(const ShadowPlace& place,
                                                         uint32_t number);

// Writes a new file beside the old one, which it replaces at the end. Errors: kIo, kCapacity, those
// of sealing; then the old file stays.
class ShadowWriter {
 public:
  explicit ShadowWriter(const ShadowPlace& place) : place_(place) {}
  ShadowWriter(const ShadowWriter&) = delete;
  ShadowWriter& operator=(const ShadowWriter&) = delete;
  ~ShadowWriter();

  Status begin(const ShadowHead& head);
  Status add(std::span<const ShadowMark> marks);
  Status finish();
  uint64_t bytes() const { return bytes_; }

 private:
  Status append(uint32_t key, std::string plain);
  Status failed(const char* what) const;
  std::string unfinished() const { return place_.path + ".tmp"; }

  const ShadowPlace place_;
  int fd_ = -1;
  uint32_t frames_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace ember
