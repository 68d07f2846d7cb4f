// The lines of a frame: title, tiers, rates, what goes on in the background, the hottest prefixes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/bytes.h"
#include "tools/commands/look/top_model.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

constexpr size_t kNameColumns = 9;
constexpr size_t kSparkColumns = 30;
constexpr size_t kMostBar = 40;
constexpr size_t kHelpWidth = 60;  // narrower frames leave out what is not the most important
constexpr std::array<const char*, 8> kSparks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kPlainSparks = "_.:-=+*#";

std::string left(std::string text, size_t columns) {
  const size_t used = columns_of(text);
  if (used < columns) text.append(columns - used, ' ');
  return text;
}

// "0", "3.4", "1,234": as exact as a glance can tell.
std::string figure(double value) {
  if (value >= 10 || value == 0) return grouped(static_cast<uint64_t>(std::llround(value)));
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string bytes_a_second(double value) {
  return human_bytes(static_cast<uint64_t>(std::llround(value))) + "/s";
}

class FrameLines {
 public:
  FrameLines(const TopHistory& history, const TopView& view)
      : history_(history), now_(history.latest()), rates_(history.rates()), view_(view) {}

  std::vector<TopLine> take(const std::vector<HotPrefix>& hottest) {
    title();
    if (view_.help) {
      help();
    } else {
      tiers();
      if (now_.live) traffic();
      prefixes(hottest);
    }
    for (TopLine& line : lines_) line.text = fitted(line.text);
    if (view_.height > 0 && lines_.size() >= view_.height) lines_.resize(view_.height - 1);
    if (view_.height > 0) lines_.resize(view_.height - 1);
    if (view_.height > 0) add(fitted(keys()), TopStyle::kHead);
    return std::move(lines_);
  }

 private:
  void add(std::string text, TopStyle style = TopStyle::kPlain) {
    lines_.push_back({std::move(text), style});
  }
  void row(const char* name, const std::string& text) { add(left(name, kNameColumns) + text); }
  bool narrow() const { return view_.width < kHelpWidth; }

  // At most as wide as the frame; where the terminal has no such characters, none of them.
  std::string fitted(const std::string& text) const {
    std::string line = one_line(text, SIZE_MAX);
    if (!view_.unicode) {
      std::string plain;
      for (const char c : line) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) plain += c;
        if (byte >= 0xc0) plain += '?';
      }
      line = std::move(plain);
      return line.substr(0, view_.width);
    }
    return columns_of(line) > view_.width ? one_line(line, view_.width) : line;
  }

  void title() {
    const std::string every = "every " + std::to_string(view_.interval_us / 1'000'000) + " s";
    const std::string state = view_.paused ? "paused" : every;
    const std::string when = narrow() ? "" : time_text(now_.unix_us) + ", ";
    add("emberkv top  " + when + state, TopStyle::kTitle);
    row("store", now_.path);
    const std::string holder = !now_.live ? "nobody holds it"
                                          : "process " + std::to_string(now_.holder_pid) +
                                                (now_.loading ? ", reading its records" : "");
    add(left("health", kNameColumns) + now_.health + "; " + holder,
        now_.health == "ok" ? TopStyle::kPlain : TopStyle::kWarning);
    if (!view_.trouble.empty()) add("no news: " + view_.trouble, TopStyle::kWarning);
    add("");
  }

  std::string bar(double share) const {
    const size_t columns = std::clamp<size_t>(view_.width / 4, 8, kMostBar);
    const auto full = static_cast<size_t>(
        std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns)));
    std::string text = "[";
    for (size_t i = 0; i < columns; ++i) text += i < full ? '#' : '.';
    return text + "] ";
  }

  void tiers() {
    for (size_t i = 0; i < kTierCount; ++i) {
      const auto tier = static_cast<Tier>(i);
      const TopTier& is = now_.tiers[i];
      if (tier != Tier::kDisk && (!now_.live || is.capacity == 0)) continue;
      const bool bytes = tier == Tier::kDisk;
      const uint64_t used = bytes ? now_.disk_bytes : is.blocks;
      const uint64_t most = bytes ? now_.disk_limit_bytes : is.capacity;
      const auto told = [bytes](uint64_t n) { return bytes ? human_bytes(n) : grouped(n); };
      std::string text = most == 0 ? "" : bar(static_cast<double>(used) /
                                              static_cast<double>(most));
      text += told(used) + (most == 0 ? "" : " of " + told(most));
      if (!bytes) text += " blocks";
      if (bytes && now_.live) text += ", " + counted(is.blocks, "block");
      row(std::string(tier_name(tier)).c_str(), text);
    }
    if (!now_.live) {
      add("");
      add(narrow() ? "a chat would show requests and rates"
                   : "requests, rates and tiers in RAM: while a process holds it, such as a chat");
    }
    add("");
  }

  void traffic() {
    row("requests", grouped(now_.running) + " running, " + grouped(now_.queued) + " waiting");
    if (rates_.known) {
      std::string by_tier;
      for (size_t i = 0; i < kTierCount; ++i) {
        if (rates_.restored[i] == 0) continue;
        by_tier += (by_tier.empty() ? " (" : ", ") +
                   std::string(tier_name(static_cast<Tier>(i))) + " " +
                   figure(rates_.restored[i]);
      }
      if (!by_tier.empty()) by_tier += ")";
      row("restored", figure(rates_.restored_all) + " tokens/s" + by_tier);
      row("computed", figure(rates_.prompt) + " tokens/s of prompts, " + figure(rates_.answer) +
                          " of answers");
    }
    row("hits", sparks() + share_text());
    if (rates_.read || rates_.written) {
      row("drive", "read " + bytes_a_second(rates_.read.value_or(0)) + ", written " +
                       bytes_a_second(rates_.written.value_or(0)));
    }
    background();
    add("");
  }

  void background() {
    std::string scrub = rates_.known ? bytes_a_second(rates_.scrubbed) + ", " : "";
    scrub += grouped(now_.scrub_passes) + (now_.scrub_passes == 1 ? " pass" : " passes");
    if (now_.last_scrub_unix_us > 0) {
      scrub += ", the last " + age_text(now_.last_scrub_unix_us, now_.unix_us) + " ago";
    }
    row("scrubber", scrub);
    if (now_.warm_up_left > 0 || now_.warmed_blocks > 0) {
      row("warm-up", counted(now_.warmed_blocks, "block") + ", " +
                         (now_.warm_up_left > 0 ? grouped(now_.warm_up_left) + " to come"
                                                : std::string("done")));
    }
    row("blocks", grouped(now_.pinned_blocks) + " pinned, " + grouped(now_.waiting_blocks) +
                      " on their way to the disk");
  }

  // A column for each two seconds of the last minute: what part of the prompts was restored.
  std::string sparks() const {
    const int64_t span_us = TopHistory::kSpanUs / static_cast<int64_t>(kSparkColumns);
    const size_t columns = std::min(kSparkColumns, view_.width / 3);
    std::string text;
    for (size_t i = columns; i > 0; --i) {
      const int64_t to_us = now_.unix_us - static_cast<int64_t>(i - 1) * span_us;
      const auto share = history_.hit_share(to_us - span_us, to_us);
      if (!share) {
        text += ' ';
        continue;
      }
      const auto level = static_cast<size_t>(std::clamp(*share, 0.0, 1.0) * 7.999);
      text += view_.unicode ? std::string(kSparks[level]) : std::string(1, kPlainSparks[level]);
    }
    return text + " ";
  }

  std::string share_text() const {
    const int64_t seconds = history_.watched_us() / 1'000'000;
    if (seconds == 0) return "no prompts yet";
    const bool whole = history_.watched_us() + view_.interval_us >= TopHistory::kSpanUs;
    const std::string span =
        whole ? "the last minute" : "the last " + std::to_string(seconds) + " s";
    const auto share = history_.hit_share();
    return share ? percent_text(*share, 1) + " of " + span : "no prompts in " + span;
  }

  void prefixes(const std::vector<HotPrefix>& hottest) {
    if (hottest.empty()) return;
    add(narrow() ? "    hits  prefix" : "    hits      tokens  hottest prefixes", TopStyle::kHead);
    for (const HotPrefix& prefix : hottest) {
      char figures[64];
      std::snprintf(figures, sizeof figures, "%8s", grouped(prefix.hits).c_str());
      std::string line = figures;
      if (!narrow()) {
        std::snprintf(figures, sizeof figures, "%12s", grouped(prefix.tokens).c_str());
        line += figures;
      }
      add(line + "  " + prefix.text);
    }
  }

  void help() {
    add("q      ends it");
    add("space  stops the clock, or starts it");
    add("+ -    a longer, a shorter interval");
    add("h      shows and hides this");
    add("");
    add("restored  prompt tokens that a tier had");
    add("computed  all others, and answers");
    add("hits      the restored part, by 2 s");
    add("drive     the process's, by the kernel");
  }

  std::string keys() const {
    return narrow() ? "q quit  space pause  h help"
                    : "q quit   space pause   + - interval   h help";
  }

  const TopHistory& history_;
  const TopSample& now_;
  const TopRates rates_;
  const TopView& view_;
  std::vector<TopLine> lines_;
};

}  // namespace

std::vector<TopLine> top_frame(const TopHistory& history, const std::vector<HotPrefix>& hottest,
                               const TopView& view) {
  return FrameLines(history, view).take(hottest);
}

}  // namespace ember
