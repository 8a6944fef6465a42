#include "report/export/flame_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "correlate/stacks.h"
#include "report/table/cumulative_rounder.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using correlate::StackFrame;

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

// A path of frames by their numbers, and what ended there.
struct Path {
  std::vector<uint32_t> frames;
  double weight = 0;
};

// Numbers the frames of a report.
class FrameNumbers {
 public:
  explicit FrameNumbers(const ProfileReport& report) : report_(report) {}

  // Returns the row's frames, outermost first. O(frames).
  std::vector<uint32_t> FramesOf(const ProfileRow& row) {
    std::vector<uint32_t> frames;
    for (const Dimension dimension : report_.by) {
      if (dimension == Dimension::kStack) {
        for (const StackFrame& frame : ShownFrames(report_, row)) frames.push_back(OfStack(frame));
      } else {
        frames.push_back(Number(GroupOf(row, dimension)));
      }
    }
    return frames;
  }
  // Puts the frames in their order, in `paths` too. Returns them.
  std::vector<FlameFrame> Sort(std::vector<Path>& paths) {
    std::vector<uint32_t> order(frames_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(
        order, {}, [this](uint32_t number) -> const auto& { return frames_[number]; });
    std::vector<uint32_t> places(order.size());
    std::vector<FlameFrame> sorted;
    for (const uint32_t number : order) {
      places[number] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(std::move(frames_[number]));
    }
    for (Path& path : paths) {
      for (uint32_t& frame : path.frames) frame = places[frame];
    }
    return sorted;
  }

 private:
  [[nodiscard]] FlameFrame GroupOf(const ProfileRow& row, Dimension dimension) const {
    const std::string name = DimensionText(report_, row, dimension);
    switch (dimension) {
      case Dimension::kMode:
        return {fmt::format("[{}]", name), KindOf(row.mode)};
      case Dimension::kPcpu:
        return {fmt::format("{} {}", ToString(dimension), name), FrameKind::kGroup};
      default:
        return {name, FrameKind::kGroup};
    }
  }
  uint32_t Number(const FlameFrame& frame) {
    const auto [at, is_new] = numbers_.try_emplace(frame, static_cast<uint32_t>(frames_.size()));
    if (is_new) frames_.push_back(frame);
    return at->second;
  }
  uint32_t OfStack(StackFrame frame) {
    frame.address = 0;
    const auto known = of_stacks_.find(frame);
    if (known != of_stacks_.end()) return known->second;
    return of_stacks_[frame] = Number({FrameNameOf(report_, frame), KindOf(frame.mode)});
  }

  const ProfileReport& report_;
  std::vector<FlameFrame> frames_;
  absl::flat_hash_map<FlameFrame, uint32_t> numbers_;
  absl::flat_hash_map<StackFrame, uint32_t> of_stacks_;
};

// Sorts the paths, and adds those up that are the same.
void Merge(std::vector<Path>& paths) {
  std::ranges::stable_sort(paths, {}, &Path::frames);
  size_t merged = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (merged > 0 && paths[merged - 1].frames == paths[i].frames) {
      paths[merged - 1].weight += paths[i].weight;
    } else {
      if (merged != i) paths[merged] = std::move(paths[i]);
      ++merged;
    }
  }
  paths.resize(merged);
}

}  // namespace

const char* ToString(FlameWeight weight) {
  return weight == FlameWeight::kCycles ? "cycles" : "samples";
}

FlameGraph FlameLines(const ProfileReport& report, const ProfileSelection& selection,
                      FlameWeight weight) {
  FrameNumbers numbers(report);
  std::vector<Path> paths;
  for (const ProfileRow& row : report.result.rows) {
    if (!IsSelected(selection, row)) continue;
    paths.push_back(
        {numbers.FramesOf(row), weight == FlameWeight::kCycles ? row.cycles : row.samples});
  }
  FlameGraph graph;
  graph.frames = numbers.Sort(paths);
  Merge(paths);
  // Sums below 0 come first: the sum of the whole numbers is right only when other sums follow
  // them.
  std::vector<int64_t> whole(paths.size());
  CumulativeRounder rounded;
  for (const bool negative : {true, false}) {
    for (size_t i = 0; i < paths.size(); ++i) {
      if ((paths[i].weight < 0) == negative) whole[i] = rounded.Next(paths[i].weight);
    }
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (whole[i] > 0) graph.lines.push_back({std::move(paths[i].frames), whole[i]});
  }
  return graph;
}

}  // namespace xenoscope::report
