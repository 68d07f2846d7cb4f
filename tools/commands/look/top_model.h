// Top model: what a store's figures at two or more times say, as the lines of a view.
//
// Journey    stat --json, tree --json, /proc -> [top_model] -> top's screen, text and JSON
// Invariant  pure: the same samples and the same size give the same lines, none longer than the
//            width; rates are of the latest two samples of one process, so that counters never fall
// Threads    any
// Not here   asking for samples, keys, the terminal (top.h, top_screen.h)
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prefix_index/journey.h"

namespace ember {

struct TopTier {
  uint64_t blocks = 0;
  uint64_t capacity = 0;  // blocks; 0: bounded in bytes
  uint64_t restored_tokens = 0;
};

// A store at one time; counters are those of the process that holds it, since it was opened.
struct TopSample {
  int64_t unix_us = 0;
  std::string path;
  std::string health;
  int holder_pid = 0;
  bool live = false;  // of the process that holds it; else at rest: no counters
  uint64_t disk_bytes = 0;
  uint64_t disk_limit_bytes = 0;  // 0: not known
  std::string eviction;
  std::array<TopTier, kTierCount> tiers{};
  uint64_t running = 0;
  uint64_t queued = 0;
  uint64_t prompt_tokens = 0;  // computed
  uint64_t answer_tokens = 0;
  uint64_t pinned_blocks = 0;
  uint64_t waiting_blocks = 0;  // on their way to the disk
  uint64_t scrubbed_bytes = 0;
  uint64_t scrub_passes = 0;
  int64_t last_scrub_unix_us = 0;
  uint64_t warmed_blocks = 0;
  uint64_t warm_up_left = 0;
  bool loading = false;
  // Of that process, from and to drives, as the kernel counts them; nothing: it does not say.
  std::optional<uint64_t> read_bytes;
  std::optional<uint64_t> written_bytes;

  uint64_t restored_tokens() const;
};

// A prefix that many requests began with.
struct HotPrefix {
  uint64_t hits = 0;
  uint64_t tokens = 0;  // of all that begins so
  std::string text;
};

// Errors: kCorruption where that is not what `stat --json` (and `tree --json`) print.
Result<TopSample> parse_top_sample(std::string_view stat_json, int64_t unix_us);
Result<std::vector<HotPrefix>> parse_hot_prefixes(std::string_view tree_lines);
// Of /proc/PID/io: read_bytes and write_bytes.
void add_drive_bytes(std::string_view proc_io, TopSample& sample);

struct TopRates {
  bool known = false;  // two samples of one process
  std::array<double, kTierCount> restored{};  // tokens a second
  double restored_all = 0;
  double prompt = 0;
  double answer = 0;
  double scrubbed = 0;  // bytes a second
  std::optional<double> read;
  std::optional<double> written;
};

// The samples of the last minute.
class TopHistory {
 public:
  static constexpr int64_t kSpanUs = 60'000'000;
  // Another process, or none: what was known is of the past.
  void add(TopSample sample);
  bool empty() const { return samples_.empty(); }
  const TopSample& latest() const { return samples_.back(); }
  // Between the first and the last of what is kept.
  int64_t watched_us() const { return latest().unix_us - samples_.front().unix_us; }
  TopRates rates() const;
  // Of the prompt tokens between two times; nothing where there were none.
  std::optional<double> hit_share(int64_t from_us, int64_t to_us) const;
  std::optional<double> hit_share() const;  // all that is kept

 private:
  const TopSample* before(int64_t unix_us) const;
  std::deque<TopSample> samples_;
};

struct TopView {
  size_t width = 100;
  size_t height = 0;  // lines; 0: as many as there are
  bool unicode = true;
  bool paused = false;
  bool help = false;
  int64_t interval_us = 2'000'000;
  std::string trouble = {};  // why there is no newer sample
};

enum class TopStyle : uint8_t { kPlain, kTitle, kHead, kWarning };
struct TopLine {
  std::string text;
  TopStyle style = TopStyle::kPlain;
};
// Of a history that is not empty.
std::vector<TopLine> top_frame(const TopHistory& history, const std::vector<HotPrefix>& hottest,
                               const TopView& view);
std::string top_json(const TopHistory& history, const std::vector<HotPrefix>& hottest);

}  // namespace ember
