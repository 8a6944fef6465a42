// A profile as flame graphs have it: one line a distinct path from the root to the function that
// was running, with what ended there.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// What a frame is, by which flame graphs colour it.
enum class FrameKind : uint8_t { kGroup, kUser, kKernel, kXen };

struct FlameFrame {
  std::string name;
  FrameKind kind = FrameKind::kGroup;
  auto operator<=>(const FlameFrame&) const = default;
};

struct FlameLine {
  std::vector<FlameFrame> frames;  // outermost first
  int64_t weight = 0;              // more than 0
};

// What widths and numbers stand for.
enum class FlameWeight : uint8_t { kSamples, kCycles };
const char* ToString(FlameWeight weight);

// A level for each column of `report.by`, a stack being as many as it has frames. In the order of
// the frames; weights are whole numbers whose sum is that of the rows, rounded.
std::vector<FlameLine> FlameLines(const ProfileReport& report, const ProfileSelection& selection,
                                  FlameWeight weight);

}  // namespace xenoscope::report
