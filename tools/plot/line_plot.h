// Line plot: a few series over one axis as an SVG picture.
//
// Journey    none; commands and benches draw with it what they print
// Invariant  the picture depends on the values alone; x is logarithmic, and positive
// Threads    one
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ember {

class LinePlot {
 public:
  enum class Scale : uint8_t {
    kLogarithmic,  // from a power of ten to a power of ten: values are positive
    kPercent,      // from 0 to 100
  };

  LinePlot(std::string title, std::string x_label, std::string y_label,
           std::vector<std::string> series, Scale scale = Scale::kLogarithmic)
      : title_(std::move(title)),
        x_label_(std::move(x_label)),
        y_label_(std::move(y_label)),
        series_(std::move(series)),
        scale_(scale) {}

  // One value for each series; x rises from row to row. `words`: what stands at x, empty: x itself.
  void add(double x, std::vector<double> values, std::string words = {});
  // A line upwards at x, which lies between the first and the last.
  void mark(double x, std::string words) { marks_.push_back({x, std::move(words)}); }
  std::string svg() const;

 private:
  struct Row {
    double x;
    std::vector<double> values;
    std::string words;
  };
  struct Mark {
    double x;
    std::string words;
  };
  struct Frame;
  Frame frame() const;
  std::string grid(const Frame& frame) const;
  std::string names(const Frame& frame) const;

  std::string title_, x_label_, y_label_;
  std::vector<std::string> series_;
  Scale scale_;
  std::vector<Row> rows_;
  std::vector<Mark> marks_;
};

}  // namespace ember
