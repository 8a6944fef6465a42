// Writes the lines that `xenoscope record` prints while it works, and its warnings about losses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xenoscope::report {

// The samples of one domain since recording began.
struct DomainSamples {
  std::string name;
  uint64_t samples = 0;
};

// The state of a recording at one instant. Counts begin with the recording.
struct RecordingState {
  // The time since recording began, in seconds.
  double seconds = 0;
  std::vector<DomainSamples> domains;
  uint64_t lost = 0;  // the samples that were lost because their buffer was full
  uint64_t trace_bytes = 0;
  double lost_trace = 0;   // the share of the pCPUs' time in which trace records were lost
  uint64_t disk_left = 0;  // the free space of the disk, in bytes
  double own_cpu = 0;      // the processor time of recording itself, in seconds
  bool sampling = true;
  bool tracing = true;
};

// Returns one line about the time from `before` to `now`; `now` is later. It gives the samples per
// second, in all and for the busiest domains; the lost samples; the trace that was written and the
// part that was lost; the free space of the disk; and the part of a processor that recording takes.
// The line is at most `width` columns long.
std::string RecordingLine(const RecordingState& before, const RecordingState& now, size_t width);

// Returns a warning, with advice, when more than 1 % of the samples were lost. `kept` and `lost`
// are counts.
std::optional<std::string> LossWarning(uint64_t kept, uint64_t lost);

// The time from one drain of a source's buffers to the next, in seconds.
struct DrainIntervals {
  std::string source;
  double asked = 0;
  double median = 0;
  double p99 = 0;
};

// Returns a warning, with advice, when drains came far later than was asked for: their median more
// than twice, or 99 % within no less than 5 times as late. Guests then kept the pCPUs that dom0
// needed. `boosted`: dom0's weight was raised meanwhile.
std::optional<std::string> LateDrainWarning(const DrainIntervals& drains, bool boosted);

// Returns a warning, with advice, when trace records were lost in more than 1 % of the pCPUs' time.
// `records` is the number of lost records, `time` the share of the time in [0, 1], and `pages` the
// buffer's size for each pCPU.
std::optional<std::string> TraceLossWarning(uint64_t records, double time, uint32_t pages);

}  // namespace xenoscope::report
