#include "core/cli/demo_chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dovetail::core {
namespace {

double largest(const Chart& chart) {
  double most = 1e-9;
  for (const Chart::Curve& c : chart.curves)
    for (double v : c.values) most = std::max(most, v);
  return most;
}

}  // namespace

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  return std::string(static_cast<size_t>(full), '#') +
         std::string(static_cast<size_t>(width - full), '.');
}

std::string chart_text(const Chart& chart) {
  constexpr size_t kWidth = 60, kHeight = 12;
  const char marks[] = "*o+x";
  const double most = largest(chart);
  std::vector<std::string> rows(kHeight, std::string(kWidth, ' '));
  std::string out = chart.title + "\n";
  for (size_t c = 0; c < chart.curves.size(); ++c) {
    const std::vector<double>& v = chart.curves[c].values;
    for (size_t x = 0; x < kWidth; ++x) {
      const auto y = static_cast<size_t>(
          std::lround(v[x * (v.size() - 1) / (kWidth - 1)] / most * (kHeight - 1)));
      rows[kHeight - 1 - y][x] = marks[c % 4];
    }
    out += std::string("  ") + marks[c % 4] + " " + chart.curves[c].name + "\n";
  }
  char label[32];
  for (size_t r = 0; r < kHeight; ++r) {
    std::snprintf(label, sizeof label, "%9.3f |",
                  most * static_cast<double>(kHeight - 1 - r) / (kHeight - 1));
    out += label + rows[r] + "\n";
  }
  return out + std::string(10, ' ') + "+" + std::string(kWidth, '-') + " " +
         std::to_string(chart.curves[0].values.size()) + " tokens\n";
}

std::string chart_svg(const Chart& chart) {
  const char* colors[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd"};
  const double most = largest(chart);
  char text[160];
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 360\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"640\" height=\"360\" fill=\"white\"/>\n<path d=\"M60 40V320H620\" "
      "fill=\"none\" stroke=\"black\"/>\n"
      "<text x=\"60\" y=\"24\">" +
      chart.title + "</text>\n";
  std::snprintf(text, sizeof text,
                "<text x=\"54\" y=\"46\" text-anchor=\"end\">%.3f</text>\n<text x=\"54\" y=\"324\" "
                "text-anchor=\"end\">0</text>\n",
                most);
  out += text;
  out += "<text x=\"620\" y=\"340\" text-anchor=\"end\">" +
         std::to_string(chart.curves[0].values.size()) + " tokens</text>\n";
  for (size_t c = 0; c < chart.curves.size(); ++c) {
    const std::vector<double>& v = chart.curves[c].values;
    out += std::string("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"") + colors[c % 4] +
           "\" points=\"";
    for (size_t i = 0; i < v.size(); ++i) {
      const double x = 60 + 560.0 * static_cast<double>(i + 1) / static_cast<double>(v.size());
      std::snprintf(text, sizeof text, "%.1f,%.1f ", x, 320 - 280 * v[i] / most);
      out += text;
    }
    out += "\"/>\n";
    std::snprintf(text, sizeof text, "<text x=\"80\" y=\"%zu\" fill=\"%s\">", 64 + 18 * c,
                  colors[c % 4]);
    out += text + chart.curves[c].name + "</text>\n";
  }
  return out + "</svg>\n";
}

}  // namespace dovetail::core
