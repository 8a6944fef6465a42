#include "report/export/flame_lines.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>

#include "report/table/cumulative_rounder.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;

FrameKind KindOf(Mode mode) {
  switch (mode) {
    case Mode::kUser:
      return FrameKind::kUser;
    case Mode::kKernel:
      return FrameKind::kKernel;
    case Mode::kXen:
      break;
  }
  return FrameKind::kXen;
}

std::vector<FlameFrame> FramesOf(const ProfileReport& report, const ProfileRow& row) {
  std::vector<FlameFrame> frames;
  for (const Dimension dimension : report.by) {
    const std::string name = DimensionText(report, row, dimension);
    switch (dimension) {
      case Dimension::kStack: {
        for (const correlate::StackFrame& frame : ShownFrames(report, row)) {
          frames.push_back({FrameNameOf(report, frame), KindOf(frame.mode)});
        }
        break;
      }
      case Dimension::kMode:
        frames.push_back({fmt::format("[{}]", name), KindOf(row.mode)});
        break;
      case Dimension::kPcpu:
        frames.push_back({fmt::format("{} {}", ToString(dimension), name), FrameKind::kGroup});
        break;
      default:
        frames.push_back({name, FrameKind::kGroup});
    }
  }
  return frames;
}

}  // namespace

const char* ToString(FlameWeight weight) {
  return weight == FlameWeight::kCycles ? "cycles" : "samples";
}

std::vector<FlameLine> FlameLines(const ProfileReport& report, const ProfileSelection& selection,
                                  FlameWeight weight) {
  std::map<std::vector<FlameFrame>, double> sums;
  for (const ProfileRow& row : report.result.rows) {
    if (!IsSelected(selection, row)) continue;
    sums[FramesOf(report, row)] += weight == FlameWeight::kCycles ? row.cycles : row.samples;
  }
  // Sums below 0 come first: the sum of the whole numbers is right only when other sums follow
  // them.
  std::map<std::vector<FlameFrame>, int64_t> whole;
  CumulativeRounder rounded;
  for (const bool negative : {true, false}) {
    for (const auto& [frames, sum] : sums) {
      if ((sum < 0) == negative) whole[frames] = rounded.Next(sum);
    }
  }
  std::vector<FlameLine> lines;
  for (auto& [frames, sum] : whole) {
    if (sum > 0) lines.push_back({frames, sum});
  }
  return lines;
}

}  // namespace xenoscope::report
