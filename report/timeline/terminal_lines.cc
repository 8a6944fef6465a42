#include "report/timeline/terminal_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/table/table_text.h"
#include "report/terminal_text.h"
#include "report/timeline/plot_axis.h"

namespace xenoscope::report {

std::string Coloured(std::string_view text, Rgb colour, bool on) {
  if (!on) return std::string(text);
  return Styled(text, fmt::format("38;2;{};{};{}", colour.red, colour.green, colour.blue));
}

std::string Padded(std::string_view text, size_t width, bool right) {
  const std::string shown = Shortened(text, width, Shorten::kMiddle);
  const std::string blanks(width - std::min(width, DisplayWidth(shown)), ' ');
  return right ? blanks + shown : shown + blanks;
}

std::string Titles(const std::string& title, const std::string& subtitle, bool colour) {
  return fmt::format("{}\n{}\n\n", colour ? Styled(title, kBold) : title, subtitle);
}

std::string TimeAxis(double from, double to, size_t indent, size_t columns) {
  std::string line(indent, ' ');
  std::string labels(indent + columns + 12, ' ');
  std::string marks;
  size_t passed = 0;
  size_t free_from = 0;
  for (const Tick& tick : LinearTicks(AxisKind::kSeconds, from, to, columns / 14 + 2)) {
    const double part = to > from ? (tick.at - from) / (to - from) : 0;
    const auto at = std::min(static_cast<size_t>(part * static_cast<double>(columns)), columns - 1);
    while (passed < at) {
      marks += "─";
      ++passed;
    }
    if (passed == at) {
      marks += "┴";
      ++passed;
    }
    const size_t place = indent + at;
    if (place < free_from || place + tick.label.size() > labels.size()) continue;
    labels.replace(place, tick.label.size(), tick.label);
    free_from = place + tick.label.size() + 1;
  }
  for (; passed < columns; ++passed) marks += "─";
  labels.erase(labels.find_last_not_of(' ') + 1);
  return line + marks + "\n" + labels + "\n";
}

}  // namespace xenoscope::report
