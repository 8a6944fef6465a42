#include "report/timeline/vcpu_chart_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "report/timeline/terminal_lines.h"

namespace xenoscope::report {
namespace {

constexpr size_t kNameColumns = 20;
constexpr size_t kFigureColumns = 18;
constexpr size_t kMinColumns = 10;
constexpr std::string_view kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

Rgb ColourOf(const VcpuChartRow& row) { return kPalette[row.colour % kPlotLines]; }

// Returns the letter of a vCPU in the rows of pCPUs.
char Letter(size_t row) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return row < kLetters.size() ? kLetters[row] : '?';
}

// A line of text that joins neighbouring pieces of one colour.
class Line {
 public:
  explicit Line(bool colour) : colour_(colour) {}
  void Add(std::string_view text, Rgb rgb) {
    if (Hue(rgb) != Hue(rgb_)) Flush();
    rgb_ = rgb;
    piece_ += text;
  }
  std::string Finish() {
    Flush();
    return std::move(out_);
  }

 private:
  static uint32_t Hue(Rgb rgb) { return rgb.red << 16 | rgb.green << 8 | rgb.blue; }
  void Flush() {
    if (!piece_.empty()) out_ += Coloured(piece_, rgb_, colour_);
    piece_.clear();
  }
  bool colour_;
  Rgb rgb_{};
  std::string piece_;
  std::string out_;
};

std::string Bar(const VcpuChartRow& row, bool colour) {
  Line line(colour);
  for (const VcpuBin& part : row.parts) {
    const double run =
        part[VcpuActivity::kGuest] + part[VcpuActivity::kXen] + part[VcpuActivity::kUndivided];
    const double eighths = std::clamp(std::round(run * 8), 0.0, 8.0);
    if (eighths == 0 && part[VcpuActivity::kRunnable] > run) {
      line.Add("░", kPalette[kPlotLines]);
      continue;
    }
    const bool mostly_xen =
        part[VcpuActivity::kXen] > part[VcpuActivity::kGuest] + part[VcpuActivity::kUndivided];
    line.Add(mostly_xen && eighths == 8 ? "▓"
             : run > 0 ? kEighths[std::max<size_t>(static_cast<size_t>(eighths), 1)]
                       : " ",
             ColourOf(row));
  }
  return line.Finish();
}

std::string Letters(const PcpuChartRow& pcpu, const VcpuChart& chart, bool colour) {
  Line line(colour);
  for (const PcpuChartRow::Part& part : pcpu.parts) {
    if (part.busy <= 0) {
      line.Add(" ", kPalette[kPlotLines]);
    } else if (part.longest_vcpu == VcpuChart::kNoVcpu) {
      line.Add("-", kPalette[kPlotLines]);
    } else {
      line.Add(std::string(1, Letter(part.longest_vcpu)), ColourOf(chart.vcpus[part.longest_vcpu]));
    }
  }
  return line.Finish();
}

}  // namespace

size_t ChartColumns(const TerminalStyle& style) {
  const size_t beside = kNameColumns + kFigureColumns + 2;
  return std::max(style.width, beside + kMinColumns) - beside;
}

std::string ToTerminal(const VcpuChart& chart, const TerminalStyle& style) {
  std::string out = Titles(chart.title, chart.subtitle, style.colour);
  if (chart.pcpus.empty()) return out + "No vCPU ran in this time.\n";
  for (const PcpuChartRow& pcpu : chart.pcpus) {
    out += Padded(fmt::format("pCPU {}", pcpu.pcpu.value), kNameColumns, true) + " " +
           Letters(pcpu, chart, style.colour);
    out += fmt::format(" {:6.2f}% busy\n", 100 * pcpu.busy);
  }
  for (size_t i = 0; i < chart.vcpus.size(); ++i) {
    const VcpuChartRow& row = chart.vcpus[i];
    const std::string name = fmt::format("{} {} {}", row.domain, ToString(row.vcpu), Letter(i));
    out += Padded(row.domain.empty() ? name.substr(1) : name, kNameColumns, true) + " " +
           Bar(row, style.colour);
    out += fmt::format(" {:6.2f}% {:6.2f}%\n", 100 * row.ran, 100 * row.waited);
  }
  const size_t columns = chart.pcpus.front().parts.size();
  out += TimeAxis(chart.from, chart.to, kNameColumns + 1, columns);
  out +=
      "pCPUs: letter of the vCPU that ran longest. vCPUs: bars show run time (▓: all of the "
      "column, mostly in Xen),\n░ is waiting for a pCPU. Figures: busy; running and waiting.\n";
  if (chart.left_out > 0)
    out += fmt::format("{} more vCPUs ran less than these.\n", chart.left_out);
  return out;
}

}  // namespace xenoscope::report
