// Writes every VM exit of a trace as one line.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "correlate/time_spans.h"
#include "report/dump/dump.h"
#include "trace/trace_file.h"
#include "trace/unread_counts.h"

namespace xenoscope::report {

// What a dump of exits found. Counts are of what was read, up to the end of the selected time.
struct ExitDumpResult {
  uint64_t exits = 0;         // lines
  uint64_t unfinished = 0;    // of these: a loss or the end of the trace came before the VMENTRY
  uint64_t without_vcpu = 0;  // VMEXIT and VMENTRY records where no vCPU is known to run
  uint64_t outside = 0;       // handlers' records of exits whose VMEXIT is not in the trace
  uint64_t lost_records = 0;
  trace::UnreadCounts unread;
  correlate::TimeSpans
      contradictions;  // the times of changes from a runstate that the vCPU was not in
  Tsc last;            // the time of the last item that was read
};

// Writes a line for each exit that began in [from, to), of the selected domains, vCPUs and pCPUs,
// in the order in which the exits ended. The cycles of an exit are those of `summary`: until the
// VMENTRY, or until the vCPU became runnable (correlate::ExitArc). Uses one thread; does not
// use `events` and `raw` of the options. Memory depends on the number of vCPUs only. Errors: those
// of the sink.
absl::StatusOr<ExitDumpResult> DumpExits(const trace::TraceFile& file, const DumpOptions& options,
                                         const DumpSink& sink);

}  // namespace xenoscope::report
