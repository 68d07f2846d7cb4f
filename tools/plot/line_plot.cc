// Line plot: scales, grid, lines and their names.
#include "tools/plot/line_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/check.h"
#include "tools/plot/svg.h"

namespace ember {
namespace {

constexpr double kWidth = 720, kHeight = 440, kLeft = 70, kRight = 130, kTop = 40, kBottom = 50;
constexpr double kLineHeight = 14;  // of words
constexpr double kTickGap = 42;     // words at the x axis stand at least so far apart
constexpr std::array<const char*, 5> kColours = {"#c0392b", "#2c3e50", "#2980b9", "#27ae60",
                                                 "#8e44ad"};

// From `low` to `high`, both as `of` takes them: a value, or its power of ten.
struct Axis {
  bool logarithmic;
  double low, high, from, to;
  double of(double value) const { return logarithmic ? std::log10(value) : value; }
  double at(double value) const {
    return high > low ? from + (to - from) * (of(value) - low) / (high - low) : (from + to) / 2;
  }
};

std::string line(double x1, double y1, double x2, double y2, const char* stroke) {
  char out[200];
  std::snprintf(out, sizeof out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
                x2, y2, stroke);
  return out;
}

std::string number(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%g", value);
  return out;
}

}  // namespace

struct LinePlot::Frame {
  Axis x, y;
};

void LinePlot::add(double x, std::vector<double> values, std::string words) {
  EMBER_CHECK(values.size() == series_.size(), "a value for each series");
  rows_.push_back({x, std::move(values), std::move(words)});
}

LinePlot::Frame LinePlot::frame() const {
  EMBER_CHECK(!rows_.empty(), "a plot of something");
  const Axis x{true, std::log10(rows_.front().x), std::log10(rows_.back().x), kLeft,
               kWidth - kRight};
  if (scale_ == Scale::kPercent) return {x, {false, 0, 100, kHeight - kBottom, kTop}};
  double least = rows_[0].values[0], most = least;
  for (const Row& row : rows_) {
    for (const double value : row.values) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  return {x,
          {true, std::floor(std::log10(least)), std::ceil(std::log10(most)), kHeight - kBottom,
           kTop}};
}

std::string LinePlot::grid(const Frame& frame) const {
  std::string out;
  const double step = scale_ == Scale::kPercent ? 20 : 1;
  for (double tick = frame.y.low; tick <= frame.y.high; tick += step) {
    const double value = scale_ == Scale::kPercent ? tick : std::pow(10, tick);
    out += line(kLeft, frame.y.at(value), kWidth - kRight, frame.y.at(value), "#ddd");
    out += svg_text(kLeft - 6, frame.y.at(value) + 4, "end", number(value));
  }
  double last = -kTickGap;
  for (const Row& row : rows_) {
    const double at = frame.x.at(row.x);
    out += line(at, kTop, at, kHeight - kBottom, "#ddd");
    if (at - last < kTickGap) continue;
    last = at;
    out += svg_text(at, kHeight - kBottom + 16, "middle",
                    row.words.empty() ? number(row.x) : row.words);
  }
  for (const Mark& mark : marks_) {
    const double at = frame.x.at(mark.x);
    out += line(at, kTop, at, kHeight - kBottom, "#888");
    out += svg_text(at, kTop - 4, "middle", mark.words);
  }
  return out;
}

// Each beside the end of its line, but not over another.
std::string LinePlot::names(const Frame& frame) const {
  std::vector<size_t> order(series_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const std::vector<double>& ends = rows_.back().values;
  std::stable_sort(order.begin(), order.end(),
                   [&ends](size_t a, size_t b) { return ends[a] > ends[b]; });
  std::string out;
  double last = 0;
  for (const size_t i : order) {
    last = std::max(frame.y.at(ends[i]) + 4, last + kLineHeight);
    out += std::string("<g fill=\"") + kColours[i % kColours.size()] + "\">" +
           svg_text(kWidth - kRight + 8, last, "start", series_[i]) + "</g>\n";
  }
  return out;
}

std::string LinePlot::svg() const {
  const Frame frame = this->frame();
  std::string out = svg_begin(kWidth, kHeight);
  out += svg_text(kWidth / 2, kTop / 2 - 4, "middle", title_);
  out += svg_text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", x_label_);
  out += svg_text(kLeft - 8, kTop - 12, "middle", y_label_);
  out += grid(frame);
  for (size_t i = 0; i < series_.size(); ++i) {
    out += std::string("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"") +
           kColours[i % kColours.size()] + "\" points=\"";
    for (const Row& row : rows_) {
      char point[64];
      std::snprintf(point, sizeof point, "%.1f,%.1f ", frame.x.at(row.x),
                    frame.y.at(row.values[i]));
      out += point;
    }
    out += "\"/>\n";
  }
  return out + names(frame) + "</svg>\n";
}

}  // namespace ember
