// What `xenoscope record` tells while it works, and when too much was lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xenoscope::report {

// Of one domain, since recording began.
struct DomainSamples {
  std::string name;
  uint64_t samples = 0;
};

// How a recording stands at one instant; counts are since it began.
struct RecordingState {
  double seconds = 0;
  std::vector<DomainSamples> domains;
  uint64_t lost = 0;  // samples that found their buffer full
  uint64_t trace_bytes = 0;
  double lost_trace = 0;   // part of the pCPUs' time in which records of the trace were lost
  uint64_t disk_left = 0;  // bytes
  double own_cpu = 0;      // seconds of processor that recording has taken
  bool sampling = true;
  bool tracing = true;
};

// One line on how it went from `before` to `now`, which is later: samples a second, in all and of
// the busiest domains; lost samples; trace written, and lost; disk left; the part of a processor it
// takes itself. Not longer than `width` columns.
std::string RecordingLine(const RecordingState& before, const RecordingState& now, size_t width);

// What to say, and what to do, when more than 1 % of the samples were lost. `kept` and `lost` are
// counts.
std::optional<std::string> LossWarning(uint64_t kept, uint64_t lost);

// The same of the trace, when records were lost in more than 1 % of the pCPUs' time: `records` in
// the part `time` of it, with buffers of so many pages for each pCPU.
std::optional<std::string> TraceLossWarning(uint64_t records, double time, uint32_t pages);

}  // namespace xenoscope::report
