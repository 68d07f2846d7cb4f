// Heat map: shares between 0 and 1 in rows and columns as an SVG picture.
//
// Journey    none; benches draw with it what they print
// Invariant  the picture depends on the values alone
// Threads    one
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ember {

class HeatMap {
 public:
  HeatMap(std::string title, std::string x_label, std::string y_label,
          std::vector<std::string> columns)
      : title_(std::move(title)),
        x_label_(std::move(x_label)),
        y_label_(std::move(y_label)),
        columns_(std::move(columns)) {}

  // One share for each column; the first row is drawn at the top.
  void add(std::string name, std::vector<double> shares);
  std::string svg() const;

 private:
  struct Row {
    std::string name;
    std::vector<double> shares;
  };
  std::string title_, x_label_, y_label_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

}  // namespace ember
