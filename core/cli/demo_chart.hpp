// Charts of the demo commands: bars and curves as text, curves as SVG.
#pragma once

#include <string>
#include <vector>

namespace dovetail::core {

struct Chart {
  struct Curve {
    std::string name;
    std::vector<double> values;
  };
  std::string title;
  std::vector<Curve> curves;  // of one length, at least one value
};

/// A bar of `width` cells filled to `share` (0 to 1).
std::string bar(double share, int width);
std::string chart_text(const Chart& chart);
std::string chart_svg(const Chart& chart);

}  // namespace dovetail::core
