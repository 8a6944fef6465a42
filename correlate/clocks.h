// Whether the clocks of the pCPUs agree, from what happened to vCPUs on several of them.
//
// A vCPU is in one place at a time. Where the trace has it running on pCPU a while it runs on, or
// is woken by, pCPU b, the two clocks differ; and each pair of visits of a vCPU to two pCPUs rules
// out a range of differences: all those with which the visits would overlap. What is left over
// after all visits is how far apart the clocks can be.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {

// A range of cycles, both ends included.
struct SkewRange {
  int64_t min = 0;
  int64_t max = 0;
};

enum class SkewKind : uint8_t {
  kConstant,  // one difference explains all records: it lies in `first`
  kDrifting,  // no one does; at first it lies in `first`, at last in `last`
  kUnknown,   // larger than kMaxSkew, or wavering: nothing can be said but that they differ
};

// "constant", "drifting", "unknown".
const char* ToString(SkewKind kind);

// How far the clock of `pcpu` is ahead of that of `reference`; negative: behind.
struct ClockSkew {
  PcpuId reference;
  PcpuId pcpu;
  SkewKind kind = SkewKind::kUnknown;
  SkewRange first;
  SkewRange last;
  uint64_t proof_offset = 0;  // byte of the record that first shows that the clocks differ
};

// Differences up to this are found (about 15 ms). A bound of twice as much is none.
inline constexpr int64_t kMaxSkew = int64_t{1} << 25;
inline constexpr int64_t kUnboundedSkew = 2 * kMaxSkew;

// The clocks that are proven to differ, each from the clock that agrees with most others, or where
// nothing relates the two, from some other. None: no record contradicts another. One pass over the
// stream; memory grows with the number of pairs of pCPUs between which vCPUs move, time with the
// number of visits within kUnboundedSkew of each other. `range` is that of the trace.
std::vector<ClockSkew> CompareClocks(const trace::TraceFile& file, TscRange range);

}  // namespace xenoscope::correlate
