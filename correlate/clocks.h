// Finds whether the clocks of the pCPUs agree, from what happened to vCPUs on several of them.
//
// A vCPU is in one place at a time. If the trace has it running on pCPU a while it runs on, or is
// woken by, pCPU b, the two clocks differ. Each pair of visits of a vCPU to two pCPUs excludes a
// range of differences: those with which the visits would overlap. The differences that no pair
// excludes are those that the clocks can have.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/time_spans.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {

// A range of cycles, both ends included.
struct SkewRange {
  int64_t min = 0;
  int64_t max = 0;
};

enum class SkewKind : uint8_t {
  kConstant,  // one difference explains all records: it lies in `first`
  kDrifting,  // the difference changes: it begins in `first`, and ends in `last`
  kUnknown,   // the clocks differ by more than kMaxSkew, or in no constant way
};

// "constant", "drifting", "unknown".
[[nodiscard]] const char* ToString(SkewKind kind);

// The cycles by which the clock of `pcpu` is ahead of that of `reference`; negative: behind.
struct ClockSkew {
  PcpuId reference;
  PcpuId pcpu;
  SkewKind kind = SkewKind::kUnknown;
  SkewRange first;
  SkewRange last;
  uint64_t proof_offset = 0;  // byte of the record that first shows that the clocks differ
};

// Differences up to this many cycles are found (about 15 ms). A bound of twice as much says
// nothing.
inline constexpr int64_t kMaxSkew = int64_t{1} << 25;
inline constexpr int64_t kUnboundedSkew = 2 * kMaxSkew;

// Returns the clocks that are proven to differ: each from the clock that agrees with most others,
// or, if nothing relates the two, from some other clock. None if no record contradicts another.
// `range` is the time of the trace, `contradictions` are those of all runstate changes that
// contradict others. Reads what is near these, up to the first proof; if there is one, the whole
// trace. Memory: by pairs of pCPUs between which vCPUs
// move. Time: by visits within kUnboundedSkew of each other.
[[nodiscard]] std::vector<ClockSkew> CompareClocks(const trace::TraceFile& file, TscRange range,
                                                   const TimeSpans& contradictions);

}  // namespace xenoscope::correlate
