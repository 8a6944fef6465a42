// A profile as the lines of a flame graph. Each line is a different path from the root to the
// function that ran, with the weight of what ended there.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// The kind of a frame. Flame graphs colour frames by it.
enum class FrameKind : uint8_t { kGroup, kUser, kKernel, kXen };

// One level of a path: a function, or a group such as a domain.
struct FlameFrame {
  std::string name;
  FrameKind kind = FrameKind::kGroup;
  auto operator<=>(const FlameFrame&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const FlameFrame& frame) {
    return H::combine(std::move(h), frame.name, frame.kind);
  }
};

// A path and its weight.
struct FlameLine {
  std::vector<uint32_t> frames;  // indices into FlameGraph::frames, outermost first
  int64_t weight = 0;            // the weight in the unit of FlameWeight; above 0
};

struct FlameGraph {
  std::vector<FlameFrame> frames;  // the different ones, in their order
  std::vector<FlameLine> lines;    // in the order of their frames
};

// The unit of widths and numbers.
enum class FlameWeight : uint8_t { kSamples, kCycles };
const char* ToString(FlameWeight weight);

// Returns the lines of the selected rows. A path has one level for
// each column of `report.by`; a stack has one level for each of its frames (ShownFrames). The
// weights are whole numbers; their sum is the rounded sum of the rows. O(n log n) for
// n frames of all rows.
FlameGraph FlameLines(const ProfileReport& report, const ProfileSelection& selection,
                      FlameWeight weight);

}  // namespace xenoscope::report
