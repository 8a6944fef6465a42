#include "report/timeline/vcpu_chart_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/markup.h"
#include "report/table/table_text.h"
#include "report/timeline/svg.h"

namespace xenoscope::report {
namespace {

// Sizes and places in pixels.
constexpr double kWidth = 1180;
constexpr double kLeft = 170;
constexpr double kRight = 930;  // the right edge of the columns; figures are right of it
constexpr double kTop = 96;
constexpr double kRowHeight = 26;  // the height of a row with the gap below it
constexpr double kHigh = 20;
constexpr double kBetween = 14;  // the gap between pCPUs and vCPUs
constexpr size_t kTicks = 10;
constexpr size_t kNameLetters = 24;
constexpr Rgb kOtherColour{153, 153, 153};

// A layer of a vCPU's row. Layers are stacked from the bottom, in the colours of the page
// (report/html/web/src/style.css).
struct Layer {
  VcpuActivity activity;
  Rgb colour;
  const char* name;
};
constexpr std::array kLayers = {
    Layer{VcpuActivity::kGuest, {86, 180, 233}, "in the guest"},
    Layer{VcpuActivity::kUndivided, {0, 114, 178}, "ran"},
    Layer{VcpuActivity::kXen, {213, 94, 0}, "in Xen"},
    Layer{VcpuActivity::kRunnable, {230, 159, 0}, "waited for a pCPU"},
    Layer{VcpuActivity::kBlocked, {227, 229, 232}, "blocked"},
};

// The colours of domains. They differ from the colours of vCPUs' activities, as in
// report/html/web/src/timeline.ts.
constexpr std::array kDomainColours = {Rgb{51, 34, 136},  Rgb{68, 170, 153},  Rgb{170, 68, 153},
                                       Rgb{153, 153, 51}, Rgb{136, 34, 85},   Rgb{136, 204, 238},
                                       Rgb{17, 119, 51},  Rgb{221, 204, 119}, Rgb{204, 102, 119}};

Rgb ColourOf(const VcpuChartRow& row) { return kDomainColours[row.colour % kDomainColours.size()]; }
Rgb ColourOf(const VcpuChart& chart, uint32_t longest_vcpu) {
  return longest_vcpu == VcpuChart::kNoVcpu ? kOtherColour : ColourOf(chart.vcpus[longest_vcpu]);
}

std::string NameOf(const VcpuChartRow& row) {
  return row.domain.empty() ? ToString(row.vcpu)
                            : fmt::format("{} {}", row.domain, ToString(row.vcpu));
}

double XOf(size_t column, size_t columns) {
  return kLeft + (kRight - kLeft) * static_cast<double>(column) / static_cast<double>(columns);
}

void Name(std::string& out, double y, const std::string& name, const std::string& figure) {
  Put(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", Px(kLeft - 8), Px(y + 14),
      Escaped(Shortened(name, kNameLetters, Shorten::kMiddle)));
  Put(out, "<text x=\"{}\" y=\"{}\" fill=\"#666\">{}</text>\n", Px(kRight + 8), Px(y + 14), figure);
}

// Draws the row of a pCPU. Neighbouring columns of one vCPU are one rectangle; its height is their
// average busy share.
void DrawPcpu(std::string& out, const VcpuChart& chart, const PcpuChartRow& pcpu, double y) {
  const size_t columns = pcpu.parts.size();
  Put(out, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f4f4f4\"/>\n", Px(kLeft),
      Px(y), Px(kRight - kLeft), Px(kHigh));
  for (size_t begin = 0; begin < columns;) {
    const uint32_t longest_vcpu = pcpu.parts[begin].longest_vcpu;
    size_t end = begin;
    double busy = 0;
    while (end < columns && pcpu.parts[end].longest_vcpu == longest_vcpu)
      busy += pcpu.parts[end++].busy;
    const double high = kHigh * std::min(busy / static_cast<double>(end - begin), 1.0);
    if (busy > 0) {
      Put(out,
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
          "fill=\"{}\"><title>{}</title></rect>\n",
          Px(XOf(begin, columns)), Px(y + kHigh - high),
          Px(XOf(end, columns) - XOf(begin, columns)), Px(high), Hex(ColourOf(chart, longest_vcpu)),
          Escaped(longest_vcpu == VcpuChart::kNoVcpu ? "another vCPU"
                                                     : NameOf(chart.vcpus[longest_vcpu])));
    }
    begin = end;
  }
}

// Draws each layer as one path of columns. Neighbouring columns of equal height are one rectangle.
void DrawVcpu(std::string& out, const VcpuChartRow& row, double y) {
  const size_t columns = row.parts.size();
  std::vector<double> below(columns, 0);
  for (const Layer& layer : kLayers) {
    std::string path;
    for (size_t begin = 0; begin < columns;) {
      const double part = row.parts[begin][layer.activity];
      const double from = below[begin];
      size_t end = begin;
      while (end < columns && row.parts[end][layer.activity] == row.parts[begin][layer.activity] &&
             below[end] == from) {
        below[end++] += part;
      }
      if (part > 0) {
        const std::string wide = Px(XOf(end, columns) - XOf(begin, columns));
        Put(path, "M{} {}h{}v{}h-{}z", Px(XOf(begin, columns)),
            Px(y + kHigh * (1 - std::min(from + part, 1.0))), wide, Px(kHigh * part), wide);
      }
      begin = end;
    }
    if (!path.empty()) {
      Put(out, "<path fill=\"{}\" d=\"{}\"><title>{}: {}</title></path>\n", Hex(layer.colour), path,
          Escaped(NameOf(row)), layer.name);
    }
  }
}

void Legend(std::string& out) {
  double x = kLeft;
  for (const Layer& layer : kLayers) {
    Put(out, "<rect x=\"{}\" y=\"66\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>", Px(x),
        Hex(layer.colour));
    Put(out, "<text x=\"{}\" y=\"76\">{}</text>\n", Px(x + 17), layer.name);
    x += 140;
  }
}

void Axis(std::string& out, const VcpuChart& chart, double y) {
  Put(out, "<path d=\"M{} {}H{}\" stroke=\"#999\"/>\n<g text-anchor=\"middle\">\n", Px(kLeft),
      Px(y), Px(kRight));
  for (const Tick& tick : LinearTicks(AxisKind::kSeconds, chart.from, chart.to, kTicks)) {
    const double part =
        chart.to > chart.from ? (tick.at - chart.from) / (chart.to - chart.from) : 0;
    const double x = kLeft + (kRight - kLeft) * part;
    Put(out, "<path d=\"M{} {}v5\" stroke=\"#999\"/><text x=\"{}\" y=\"{}\">{}</text>\n", Px(x),
        Px(y), Px(x), Px(y + 20), tick.label);
  }
  Put(out, "<text x=\"{}\" y=\"{}\" fill=\"#666\">time since the trace began</text>\n</g>\n",
      Px((kLeft + kRight) / 2), Px(y + 40));
}

}  // namespace

std::string ToSvg(const VcpuChart& chart) {
  std::string out;
  const size_t rows = chart.pcpus.size() + chart.vcpus.size();
  const double bottom = kTop + kRowHeight * static_cast<double>(rows) + kBetween;
  OpenSvg(out, {kWidth, bottom + 60}, kLeft, chart.title, chart.subtitle);
  Legend(out);
  double y = kTop;
  for (const PcpuChartRow& pcpu : chart.pcpus) {
    Name(out, y, fmt::format("pCPU {}", pcpu.pcpu.value),
         fmt::format("{:.2f} % busy", 100 * pcpu.busy));
    DrawPcpu(out, chart, pcpu, y);
    y += kRowHeight;
  }
  y += kBetween;
  for (const VcpuChartRow& row : chart.vcpus) {
    Put(out, "<rect x=\"{}\" y=\"{}\" width=\"5\" height=\"{}\" fill=\"{}\"/>", Px(kLeft - 6),
        Px(y), Px(kHigh), Hex(ColourOf(row)));
    Name(out, y, NameOf(row),
         fmt::format("{:.2f} % ran, {:.2f} % waited", 100 * row.ran, 100 * row.waited));
    DrawVcpu(out, row, y);
    y += kRowHeight;
  }
  Axis(out, chart, bottom);
  if (chart.left_out > 0) {
    Put(out, "<text x=\"{}\" y=\"{}\" fill=\"#666\">{} more vCPUs ran less than these</text>\n",
        Px(kLeft), Px(bottom + 52), chart.left_out);
  }
  return out + "</svg>\n";
}

}  // namespace xenoscope::report
