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
constexpr size_t kLeastColumns = 10;
constexpr std::string_view kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

Rgb ColourOf(const VcpuLane& lane) { return kPalette[lane.colour % kPlotLines]; }

// What stands for a vCPU in the lanes of pCPUs.
char Letter(size_t lane) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return lane < kLetters.size() ? kLetters[lane] : '?';
}

// Pieces of one colour as one.
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

std::string Bar(const VcpuLane& lane, bool colour) {
  Line line(colour);
  for (const VcpuBin& part : lane.parts) {
    const double run = part[Doing::kGuest] + part[Doing::kXen] + part[Doing::kWhole];
    const double eighths = std::clamp(std::round(run * 8), 0.0, 8.0);
    if (eighths == 0 && part[Doing::kRunnable] > run) {
      line.Add("░", kPalette[kPlotLines]);
      continue;
    }
    const bool mostly_xen = part[Doing::kXen] > part[Doing::kGuest] + part[Doing::kWhole];
    line.Add(mostly_xen && eighths == 8 ? "▓"
             : run > 0 ? kEighths[std::max<size_t>(static_cast<size_t>(eighths), 1)]
                       : " ",
             ColourOf(lane));
  }
  return line.Finish();
}

std::string Letters(const PcpuLane& pcpu, const VcpuChart& chart, bool colour) {
  Line line(colour);
  for (const PcpuLane::Part& part : pcpu.parts) {
    if (part.busy <= 0) {
      line.Add(" ", kPalette[kPlotLines]);
    } else if (part.who == VcpuChart::kNobody) {
      line.Add("-", kPalette[kPlotLines]);
    } else {
      line.Add(std::string(1, Letter(part.who)), ColourOf(chart.vcpus[part.who]));
    }
  }
  return line.Finish();
}

}  // namespace

size_t ChartColumns(const TerminalStyle& style) {
  const size_t beside = kNameColumns + kFigureColumns + 2;
  return std::max(style.width, beside + kLeastColumns) - beside;
}

std::string ToTerminal(const VcpuChart& chart, const TerminalStyle& style) {
  std::string out = Titles(chart.title, chart.subtitle, style.colour);
  if (chart.pcpus.empty()) return out + "Nobody ran in this time.\n";
  for (const PcpuLane& pcpu : chart.pcpus) {
    out += Padded(fmt::format("pCPU {}", pcpu.pcpu.value), kNameColumns, true) + " " +
           Letters(pcpu, chart, style.colour);
    out += fmt::format(" {:6.2f}% busy\n", 100 * pcpu.busy);
  }
  for (size_t i = 0; i < chart.vcpus.size(); ++i) {
    const VcpuLane& lane = chart.vcpus[i];
    const std::string name = fmt::format("{} {} {}", lane.domain, ToString(lane.vcpu), Letter(i));
    out += Padded(lane.domain.empty() ? name.substr(1) : name, kNameColumns, true) + " " +
           Bar(lane, style.colour);
    out += fmt::format(" {:6.2f}% {:6.2f}%\n", 100 * lane.ran, 100 * lane.waited);
  }
  const size_t columns = chart.pcpus.front().parts.size();
  out += TimeAxis(chart.from, chart.to, kNameColumns + 1, columns);
  out +=
      "pCPUs: the letter of who ran most. vCPUs: bars are time that it ran (▓ all of it, mostly in "
      "Xen),"
      "\n░ it waited for a pCPU. Behind them: how much it ran, and waited.\n";
  if (chart.left_out > 0)
    out += fmt::format("{} more vCPUs ran less than these.\n", chart.left_out);
  return out;
}

}  // namespace xenoscope::report
