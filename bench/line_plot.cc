// Line plot: scales, grid, lines and their names.
#include "bench/line_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "bench/svg.h"

namespace ember {
namespace {

constexpr double kWidth = 720, kHeight = 440, kLeft = 70, kRight = 130, kTop = 40, kBottom = 50;
constexpr std::array<const char*, 5> kColours = {"#c0392b", "#2c3e50", "#2980b9", "#27ae60",
                                                 "#8e44ad"};

// Logarithmic, from a power of ten to a power of ten.
struct Scale {
  double low, high, from, to;
  double at(double value) const {
    return from + (to - from) * (std::log10(value) - low) / (high - low);
  }
};

std::string line(double x1, double y1, double x2, double y2) {
  char out[160];
  std::snprintf(out, sizeof out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", x1, y1,
                x2, y2);
  return out;
}

std::string number(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%g", value);
  return out;
}

}  // namespace

void LinePlot::add(double x, std::vector<double> values) {
  EMBER_CHECK(values.size() == series_.size(), "a value for each series");
  rows_.push_back({x, std::move(values)});
}

std::string LinePlot::svg() const {
  EMBER_CHECK(!rows_.empty(), "a plot of something");
  double least = rows_[0].values[0], most = least;
  for (const Row& row : rows_) {
    for (double value : row.values) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  const Scale x{std::log10(rows_.front().x), std::log10(rows_.back().x), kLeft, kWidth - kRight};
  const Scale y{std::floor(std::log10(least)), std::ceil(std::log10(most)), kHeight - kBottom,
                kTop};
  std::string out = svg_begin(kWidth, kHeight);
  out += svg_text(kWidth / 2, kTop / 2, "middle", title_);
  out += svg_text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", x_label_);
  out += svg_text(kLeft - 8, kTop - 12, "middle", y_label_);
  for (double power = y.low; power <= y.high; ++power) {
    const double value = std::pow(10, power);
    out += line(kLeft, y.at(value), kWidth - kRight, y.at(value));
    out += svg_text(kLeft - 6, y.at(value) + 4, "end", number(value));
  }
  for (const Row& row : rows_) {
    out += line(x.at(row.x), kTop, x.at(row.x), kHeight - kBottom);
    out += svg_text(x.at(row.x), kHeight - kBottom + 16, "middle", number(row.x));
  }
  for (size_t i = 0; i < series_.size(); ++i) {
    const std::string colour = kColours[i % kColours.size()];
    out += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + colour + "\" points=\"";
    for (const Row& row : rows_) {
      char point[64];
      std::snprintf(point, sizeof point, "%.1f,%.1f ", x.at(row.x), y.at(row.values[i]));
      out += point;
    }
    out += "\"/>\n<g fill=\"" + colour + "\">" +
           svg_text(kWidth - kRight + 8, y.at(rows_.back().values[i]) + 4, "start", series_[i]) +
           "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace ember
