// A progress bar of one line, drawn over itself.
#include "tools/commands/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace ember {
namespace {

constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress() : out_(std::cerr), enabled_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::string_view what, double done) {
  if (!enabled_) return;
  const int percent = static_cast<int>(std::clamp(done, 0.0, 1.0) * 100.0);
  if (percent == percent_ && what == what_) return;
  percent_ = percent;
  what_ = what;
  const auto filled = static_cast<size_t>(percent * kBarWidth / 100);
  std::string bar(filled, '#');
  bar.resize(static_cast<size_t>(kBarWidth), '.');
  char line[128];
  std::snprintf(line, sizeof line, "\r%-24s [%s] %3d %%", what_.c_str(), bar.c_str(), percent);
  out_ << line << std::flush;
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  out_ << "\r\033[K" << std::flush;
  drawn_ = false;
  percent_ = -1;
}

}  // namespace ember
