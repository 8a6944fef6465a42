// A profile as the lines of a flame graph. Each line is a different path from the root to the
// function that ran, with the weight of what ended there.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
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
};

// A path and its weight.
struct FlameLine {
  std::vector<FlameFrame> frames;  // the frames, outermost first
  int64_t weight = 0;              // the weight in the unit of FlameWeight; above 0
};

// The unit of widths and numbers.
enum class FlameWeight : uint8_t { kSamples, kCycles };
const char* ToString(FlameWeight weight);

// Returns the lines of the selected rows, in the order of their frames. A path has one level for
// each column of `report.by`; a stack has one level for each of its frames (ShownFrames). The
// weights are whole numbers; their sum is the rounded sum of the rows.
std::vector<FlameLine> FlameLines(const ProfileReport& report, const ProfileSelection& selection,
                                  FlameWeight weight);

}  // namespace xenoscope::report
