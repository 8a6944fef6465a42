#include "report/timeline/plot_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include "report/markup.h"
#include "report/table/table_text.h"
#include "report/timeline/svg.h"

namespace xenoscope::report {
namespace {

// Sizes and places in pixels.
constexpr double kWidth = 1060;
constexpr double kHeight = 460;
constexpr double kLeft = 124;
constexpr double kRight = 764;  // the right edge of the axes; the legend is right of it
constexpr double kTop = 64;
constexpr double kBottom = 404;
constexpr double kLegend = kRight + 24;
constexpr size_t kXTicks = 9;
constexpr size_t kYTicks = 7;
constexpr size_t kWideLabel = 12;  // the characters of a label; longer labels have a smaller font
constexpr double kLetter = 0.55;   // the width of a letter, as a share of the font's size
constexpr size_t kLegendColumns = 30;  // the characters of a legend line

double XOf(double seconds, double all) {
  return kLeft + (kRight - kLeft) * (all > 0 ? std::clamp(seconds / all, 0.0, 1.0) : 0);
}
// Returns the y of a place; `place` is in [0, 1], from the bottom.
double YOf(double place) { return kBottom - (kBottom - kTop) * std::clamp(place, 0.0, 1.0); }

// Draws the grid and the labels. The places of `ticks` are in [0, 1].
void Axes(std::string& out, double seconds, const std::vector<Tick>& ticks,
          const std::string& y_title) {
  out += "<g stroke=\"#e4e4e4\">\n";
  for (const Tick& tick : ticks) {
    Put(out, "<path d=\"M{} {}H{}\"/>\n", Px(kLeft), Px(YOf(tick.at)), Px(kRight));
  }
  const std::vector<Tick> times = LinearTicks(AxisKind::kSeconds, 0, seconds, kXTicks);
  out += "</g>\n<g stroke=\"#999\">\n";
  for (const Tick& tick : times) {
    Put(out, "<path d=\"M{} {}v5\"/>\n", Px(XOf(tick.at, seconds)), Px(kBottom));
  }
  size_t widest = 0;
  for (const Tick& tick : ticks) widest = std::max(widest, DisplayWidth(tick.label));
  const double size = widest > kWideLabel ? 9.5 : 12;
  Put(out, "</g>\n<g text-anchor=\"end\" font-size=\"{}\">\n", Px(size));
  for (const Tick& tick : ticks) {
    Put(out, "<text x=\"{}\" y=\"{}\">{}</text>\n", Px(kLeft - 8), Px(YOf(tick.at) + size / 3),
        Escaped(tick.label));
  }
  out += "</g>\n<g text-anchor=\"middle\">\n";
  for (const Tick& tick : times) {
    Put(out, "<text x=\"{}\" y=\"{}\">{}</text>\n", Px(XOf(tick.at, seconds)), Px(kBottom + 20),
        tick.label);
  }
  Put(out, "<text x=\"{}\" y=\"{}\" fill=\"#666\">time since the trace began</text>\n",
      Px((kLeft + kRight) / 2), Px(kBottom + 40));
  const double beside = kLeft - 20 - kLetter * size * static_cast<double>(widest);
  Put(out, "<text transform=\"translate({} {}) rotate(-90)\" fill=\"#666\">{}</text>\n</g>\n",
      Px(std::max(beside, 14.0)), Px((kTop + kBottom) / 2), Escaped(y_title));
}

void Frame(std::string& out) {
  Put(out, "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#999\"/>\n", Px(kLeft), Px(kTop),
      Px(kBottom), Px(kRight));
}

// Draws the legend. `reversed` gives the order of a stack, its top first.
void Legend(std::string& out, const std::vector<PlotLine>& lines, bool reversed) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t at = reversed ? lines.size() - 1 - i : i;
    const double y = kTop + 8 + 19 * static_cast<double>(i);
    const size_t room = kLegendColumns - std::min(DisplayWidth(lines[at].figure), size_t{16}) - 1;
    Put(out, "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>",
        Px(kLegend), Px(y - 10), Hex(ColourOf(lines[at], at)));
    Put(out, "<text x=\"{}\" y=\"{}\">{}</text>", Px(kLegend + 18), Px(y),
        Escaped(Shortened(lines[at].name, room, Shorten::kMiddle)));
    Put(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\">{}</text>\n",
        Px(kWidth - 10), Px(y), Escaped(lines[at].figure));
  }
}

void Nothing(std::string& out) {
  Put(out,
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"15\" fill=\"#888\">The trace has "
      "no such events</text>\n",
      Px((kLeft + kRight) / 2), Px((kTop + kBottom) / 2));
}

// Returns the steps of values over the bins, from left to right. The path begins with "M" and the
// first point.
std::string Steps(const std::vector<double>& values, const SeriesPlot& plot, double high) {
  std::string path;
  std::string y_before;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string y = Px(YOf(values[i] / high));
    if (i == 0) {
      Put(path, "M{} {}", Px(kLeft), y);
    } else if (y != y_before) {
      Put(path, "H{}V{}", Px(XOf(static_cast<double>(i) * plot.bin_seconds, plot.seconds)), y);
    }
    y_before = y;
  }
  Put(path, "H{}", Px(kRight));
  return path;
}

// Returns the same steps from right to left, as the lower edge of an area.
std::string StepsBack(const std::vector<double>& values, const SeriesPlot& plot, double high) {
  std::string path;
  std::string y_before;
  for (size_t i = values.size(); i-- > 0;) {
    const std::string y = Px(YOf(values[i] / high));
    if (y != y_before) {
      if (i + 1 < values.size()) {
        Put(path, "H{}", Px(XOf(static_cast<double>(i + 1) * plot.bin_seconds, plot.seconds)));
      }
      Put(path, "V{}", y);
    }
    y_before = y;
  }
  Put(path, "H{}Z", Px(kLeft));
  return path;
}

// Draws one path for each line and strength. Cells side by side are one rectangle.
void Cells(std::string& out, const ScatterPlot& plot, const PlotLine& line, size_t index) {
  const uint32_t max =
      line.cells.empty() ? 0 : *std::max_element(line.cells.begin(), line.cells.end());
  if (max == 0) return;
  constexpr std::array kOpacity = {0.45, 0.65, 0.85, 1.0};
  const auto level = [&](uint32_t count) {
    if (count == 0) return size_t{kOpacity.size()};
    const double share = std::log1p(count) / std::log1p(max);
    return std::min(static_cast<size_t>(share * kOpacity.size()), kOpacity.size() - 1);
  };
  const double width = (kRight - kLeft) / static_cast<double>(plot.columns);
  const double height = (kBottom - kTop) / static_cast<double>(plot.rows);
  std::array<std::string, kOpacity.size()> paths;
  for (size_t row = 0; row < plot.rows; ++row) {
    const uint32_t* cells = &line.cells[row * plot.columns];
    for (size_t column = 0; column < plot.columns;) {
      const size_t strength = level(cells[column]);
      size_t end = column + 1;
      while (end < plot.columns && level(cells[end]) == strength) ++end;
      if (strength < kOpacity.size()) {
        const std::string wide = Px(static_cast<double>(end - column) * width);
        Put(paths[strength], "M{} {}h{}v{}h-{}z", Px(kLeft + static_cast<double>(column) * width),
            Px(kBottom - static_cast<double>(row + 1) * height), wide, Px(height), wide);
      }
      column = end;
    }
  }
  for (size_t strength = 0; strength < kOpacity.size(); ++strength) {
    if (paths[strength].empty()) continue;
    Put(out, "<path fill=\"{}\" fill-opacity=\"{}\" d=\"{}\"/>\n", Hex(ColourOf(line, index)),
        kOpacity[strength], paths[strength]);
  }
}

}  // namespace

std::string ToSvg(const SeriesPlot& plot) {
  std::string out;
  OpenSvg(out, {kWidth, kHeight}, kLeft, plot.title, plot.subtitle);
  const size_t bins = plot.lines.empty() ? 0 : plot.lines.front().values.size();
  std::vector<double> stack(bins, 0);
  double max = 0;
  for (const PlotLine& line : plot.lines) {
    for (size_t i = 0; i < bins; ++i) {
      stack[i] += line.values[i];
      max = std::max(max, plot.stacked ? stack[i] : line.values[i]);
    }
  }
  const double high = RoundUp(max);
  std::vector<Tick> ticks = LinearTicks(plot.y_kind, 0, high, kYTicks);
  for (Tick& tick : ticks) tick.at /= high;
  Axes(out, plot.seconds, ticks, plot.y_title);
  if (bins == 0) {
    Nothing(out);
  } else if (plot.stacked) {
    std::vector<double> below(bins, 0);
    std::vector<double> above(bins, 0);
    for (size_t l = 0; l < plot.lines.size(); ++l) {
      for (size_t i = 0; i < bins; ++i) above[i] = below[i] + plot.lines[l].values[i];
      Put(out, "<path fill=\"{}\" d=\"{}{}\"/>\n", Hex(ColourOf(plot.lines[l], l)),
          Steps(above, plot, high), StepsBack(below, plot, high));
      below = above;
    }
  } else {
    for (size_t l = plot.lines.size(); l-- > 0;) {
      Put(out,
          "<path fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\" "
          "d=\"{}\"/>\n",
          Hex(ColourOf(plot.lines[l], l)), Steps(plot.lines[l].values, plot, high));
    }
  }
  Frame(out);
  Legend(out, plot.lines, plot.stacked);
  return out + "</svg>\n";
}

std::string ToSvg(const ScatterPlot& plot) {
  std::string out;
  OpenSvg(out, {kWidth, kHeight}, kLeft, plot.title, plot.subtitle);
  Axes(out, plot.seconds, plot.y_ticks, plot.y_title);
  if (plot.lines.empty()) Nothing(out);
  if (plot.exact) {
    for (const PlotPoint& point : plot.points) {
      Put(out, "<circle cx=\"{}\" cy=\"{}\" r=\"2.2\" fill=\"{}\" fill-opacity=\".75\"/>\n",
          Px(XOf(point.x, plot.seconds)), Px(YOf(point.y)),
          Hex(ColourOf(plot.lines[point.line], point.line)));
    }
  } else {
    for (size_t l = plot.lines.size(); l-- > 0;) Cells(out, plot, plot.lines[l], l);
  }
  Frame(out);
  Legend(out, plot.lines, false);
  return out + "</svg>\n";
}

}  // namespace xenoscope::report
