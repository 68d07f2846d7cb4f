// Line plot: a few series over one axis as an SVG picture, both axes logarithmic.
//
// Journey    none; benches draw with it what they print
// Invariant  values are positive; the picture depends on the values alone
// Threads    one
#pragma once

#include <string>
#include <vector>

namespace ember {

class LinePlot {
 public:
  LinePlot(std::string title, std::string x_label, std::string y_label,
           std::vector<std::string> series)
      : title_(std::move(title)),
        x_label_(std::move(x_label)),
        y_label_(std::move(y_label)),
        series_(std::move(series)) {}

  // One value for each series.
  void add(double x, std::vector<double> values);
  std::string svg() const;

 private:
  struct Row {
    double x;
    std::vector<double> values;
  };
  std::string title_, x_label_, y_label_;
  std::vector<std::string> series_;
  std::vector<Row> rows_;
};

}  // namespace ember
