// SVG: the few words of it that our pictures share.
//
// Journey    none; line_plot, and bench/heat_map
// Threads    any
#pragma once

#include <string>

namespace ember {

// The opening tag and a white ground; the picture ends with </svg>.
std::string svg_begin(double width, double height);
// `anchor`: start, middle or end of the words stands at x.
std::string svg_text(double x, double y, const char* anchor, const std::string& words);

}  // namespace ember
