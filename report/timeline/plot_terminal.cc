#include "report/timeline/plot_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "report/timeline/terminal_lines.h"

namespace xenoscope::report {
namespace {

constexpr size_t kNameColumns = 18;    // the width of names beside bars and labels beside points
constexpr size_t kFigureColumns = 10;  // the width of figures after bars
constexpr size_t kMinBins = 10;

// A braille character.
struct Braille {
  uint8_t dots = 0;
  size_t line = 0;
  uint64_t count = 0;  // the points of the line that has the most points here
};

// The points of a scatterplot as braille characters, each of which has 2 columns and 4 rows of
// dots.
struct Canvas {
  size_t columns;  // of characters
  size_t rows;
  std::vector<Braille> cells;

  // Sets the dot that is `column` from the left and `row` from the bottom.
  void Mark(size_t line, size_t column, size_t row, uint64_t count) {
    // The dots of a braille character, by row from the bottom and by column (Unicode, block
    // U+2800).
    constexpr uint8_t kDots[4][2] = {{0x40, 0x80}, {0x04, 0x20}, {0x02, 0x10}, {0x01, 0x08}};
    Braille& cell = cells[row / 4 * columns + column / 2];
    cell.dots |= kDots[row % 4][column % 2];
    if (count >= cell.count) {
      cell.count = count;
      cell.line = line;
    }
  }
};

Canvas DrawPoints(const ScatterPlot& plot) {
  const size_t columns = plot.columns / 2;
  const size_t rows = plot.rows / 4;
  Canvas canvas{.columns = columns, .rows = rows, .cells = std::vector<Braille>(columns * rows)};
  for (size_t l = 0; l < plot.lines.size(); ++l) {
    const std::vector<uint32_t>& counts = plot.lines[l].cells;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] != 0 && i % plot.columns / 2 < columns && i / plot.columns / 4 < rows) {
        canvas.Mark(l, i % plot.columns, i / plot.columns, counts[i]);
      }
    }
  }
  for (const PlotPoint& point : plot.points) {
    const double across = plot.seconds > 0 ? point.x / plot.seconds : 0;
    canvas.Mark(
        point.line,
        std::min(static_cast<size_t>(across * static_cast<double>(columns * 2)), columns * 2 - 1),
        std::min(static_cast<size_t>(point.y * static_cast<double>(rows * 4)), rows * 4 - 1), 1);
  }
  return canvas;
}

void AppendCell(std::string& out, const ScatterPlot& plot, const Braille& cell, bool colour) {
  if (cell.dots == 0) {
    out += ' ';
    return;
  }
  // The character is U+2800 + dots, in UTF-8.
  const std::string braille = {'\xe2', static_cast<char>(0xa0 | cell.dots >> 6),
                               static_cast<char>(0x80 | (cell.dots & 0x3f))};
  out += Coloured(braille, ColourOf(plot.lines[cell.line], cell.line), colour);
}

// Appends the rows with the labels of the vertical axis.
void AppendRows(std::string& out, const ScatterPlot& plot, const Canvas& canvas, bool colour) {
  std::vector<std::string> labels(canvas.rows);
  for (const Tick& tick : plot.y_ticks) {
    labels[std::min(static_cast<size_t>(tick.at * static_cast<double>(canvas.rows)),
                    canvas.rows - 1)] = tick.label;
  }
  for (size_t row = canvas.rows; row-- > 0;) {
    out += Padded(labels[row], kNameColumns, true) + (labels[row].empty() ? " │" : " ┤");
    for (size_t column = 0; column < canvas.columns; ++column) {
      AppendCell(out, plot, canvas.cells[row * canvas.columns + column], colour);
    }
    while (out.ends_with(' ')) out.pop_back();
    out += "\n";
  }
}

// Appends the names of the lines with their colours, as many in a row as fit.
void AppendLegend(std::string& out, const ScatterPlot& plot, const TerminalStyle& style) {
  size_t used = 0;
  for (size_t l = 0; l < plot.lines.size(); ++l) {
    const std::string text = fmt::format("{} {}", plot.lines[l].name, plot.lines[l].figure);
    if (used > 0 && used + text.size() + 4 > std::max<size_t>(style.width, 20)) {
      out += "\n";
      used = 0;
    }
    out += (used > 0 ? "  " : "") + Coloured("■", ColourOf(plot.lines[l], l), style.colour) + " " +
           text;
    used += text.size() + 4;
  }
  out += "\n";
}

// Draws one line of a series as bars. They are `rows` terminal rows high, in steps of an eighth of
// a row.
void Bars(std::string& out, const PlotLine& line, size_t index, double high, size_t rows,
          bool colour) {
  constexpr std::string_view kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  for (size_t row = rows; row-- > 0;) {
    const bool middle = row == 0;
    out += Padded(middle ? line.name : "", kNameColumns, true) + " ";
    std::string bars;
    for (const double value : line.values) {
      const double eighths = high > 0 ? value / high * static_cast<double>(8 * rows) : 0;
      // A value above 0 is visible, however small it is.
      const double shown = value > 0 ? std::max(std::round(eighths), 1.0) : 0;
      const double here = std::clamp(shown - static_cast<double>(8 * row), 0.0, 8.0);
      bars += kEighths[static_cast<size_t>(here)];
    }
    out += Coloured(bars, ColourOf(line, index), colour);
    if (middle) out += " " + line.figure;
    out += "\n";
  }
}

}  // namespace

size_t TerminalBins(const TerminalStyle& style) {
  const size_t beside = kNameColumns + kFigureColumns + 2;
  return std::max(style.width, beside + kMinBins) - beside;
}
size_t TerminalColumns(const TerminalStyle& style) {
  return (std::max(style.width, kNameColumns + kMinBins + 3) - kNameColumns - 3) * 2;
}
size_t TerminalRows(const TerminalStyle& style) {
  return (std::max<size_t>(style.height, 14) - 8) * 4;
}

std::string ToTerminal(const SeriesPlot& plot, const TerminalStyle& style) {
  std::string out = Titles(plot.title, plot.subtitle, style.colour);
  if (plot.lines.empty()) return out + "The trace has no such events.\n";
  double max = 0;
  for (const PlotLine& line : plot.lines) {
    for (const double value : line.values) max = std::max(max, value);
  }
  const double high = RoundUp(max);
  const size_t room = std::max<size_t>(style.height, 8) - 7;
  const size_t rows = std::clamp<size_t>(room / plot.lines.size(), 1, 4);
  for (size_t i = 0; i < plot.lines.size(); ++i) {
    Bars(out, plot.lines[i], i, high, rows, style.colour);
  }
  const double drawn = plot.bin_seconds * static_cast<double>(plot.lines.front().values.size());
  out += TimeAxis(0, drawn, kNameColumns + 1, plot.lines.front().values.size());
  const std::vector<Tick> full = LinearTicks(plot.y_kind, 0, high, 11);
  if (!full.empty()) {
    fmt::format_to(std::back_inserter(out), "A full bar is {} {}.\n", full.back().label,
                   plot.y_kind == AxisKind::kShare ? "of time" : plot.y_title);
  }
  return out;
}

std::string ToTerminal(const ScatterPlot& plot, const TerminalStyle& style) {
  std::string out = Titles(plot.title, plot.subtitle, style.colour);
  if (plot.lines.empty()) return out + "The trace has no such events.\n";
  const Canvas canvas = DrawPoints(plot);
  AppendRows(out, plot, canvas, style.colour);
  out += TimeAxis(0, plot.seconds, kNameColumns + 2, canvas.columns);
  AppendLegend(out, plot, style);
  return out;
}

}  // namespace xenoscope::report
