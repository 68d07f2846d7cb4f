// SVG: the opening tag, and words at a place.
#include "tools/plot/svg.h"

#include <cstdio>

namespace ember {

std::string svg_begin(double width, double height) {
  char out[256];
  std::snprintf(out, sizeof out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                width, height);
  return out;
}

std::string svg_text(double x, double y, const char* anchor, const std::string& words) {
  char start[128];
  std::snprintf(start, sizeof start, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
                anchor);
  return start + words + "</text>\n";
}

}  // namespace ember
