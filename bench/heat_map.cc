// Heat map: cells from red (0) over yellow to green (1), each with its share in per cent.
#include "bench/heat_map.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/check.h"
#include "tools/plot/svg.h"

namespace ember {
namespace {

constexpr double kCellWidth = 64, kCellHeight = 28, kLeft = 90, kTop = 48, kBottom = 52;

// Red and green rise and fall on either side of the middle; blue stays.
std::string cell(double x, double y, double share) {
  const double red = 230 - 130 * std::max(0.0, 2 * share - 1);
  const double green = 110 + 90 * std::min(1.0, 2 * share);
  char out[160];
  std::snprintf(out, sizeof out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"rgb(%.0f,%.0f,100)\" stroke=\"white\"/>\n",
                x, y, kCellWidth, kCellHeight, red, green);
  return out;
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share));
}

}  // namespace

void HeatMap::add(std::string name, std::vector<double> shares) {
  EMBER_CHECK(shares.size() == columns_.size(), "a share for each column");
  rows_.push_back({std::move(name), std::move(shares)});
}

std::string HeatMap::svg() const {
  const double width = kLeft + kCellWidth * static_cast<double>(columns_.size()) + 20;
  const double bottom = kTop + kCellHeight * static_cast<double>(rows_.size());
  std::string out = svg_begin(width, bottom + kBottom);
  out += svg_text(width / 2, 20, "middle", title_);
  out += svg_text(width / 2, bottom + kBottom - 12, "middle", x_label_);
  out += svg_text(kLeft - 8, kTop - 8, "end", y_label_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    out += svg_text(kLeft + kCellWidth * (static_cast<double>(i) + 0.5), bottom + 18, "middle",
                    columns_[i]);
  }
  double y = kTop;
  for (const Row& row : rows_) {
    out += svg_text(kLeft - 8, y + kCellHeight / 2 + 4, "end", row.name);
    double x = kLeft;
    for (const double share : row.shares) {
      out += cell(x, y, std::clamp(share, 0.0, 1.0));
      out += svg_text(x + kCellWidth / 2, y + kCellHeight / 2 + 4, "middle", percent(share));
      x += kCellWidth;
    }
    y += kCellHeight;
  }
  return out + "</svg>\n";
}

}  // namespace ember
