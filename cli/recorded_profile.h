// The profile of a recording's samples joined with its trace: what `report` prints and `top` draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "cli/recorded_processes.h"
#include "cli/recorded_samples.h"
#include "correlate/pipeline_observer.h"
#include "recording/recording.h"
#include "report/profile/profile_view.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::cli {

// Where a profile comes from. All of it outlives the calls below.
struct ProfileInput {
  const trace::TraceFile* trace = nullptr;  // null: recorded without one
  trace::Dialect dialect;                   // with the vendor, if anything tells it
  Resolver* resolver = nullptr;
  // Only samples whose brackets lie in it, and only this time of the trace.
  TscRange within{Tsc{0}, trace::OrderedStream::kEnd};
  // Sees it all; null: nobody. By then the report has clock, vendor and sampled range.
  correlate::PipelineObserver* pipeline_observer = nullptr;
};

// What is known of the trace's dialect, and the vendor from its records where that is not known.
trace::Dialect CompleteDialect(trace::Dialect known, const trace::TraceFile& trace);

// The number of the event of this name; of the first that has samples behind what is passed over
// (SampleSelection) when it is empty. Errors: NotFound, with the names that there are.
absl::StatusOr<uint16_t> ChooseEvent(const recording::Recording& recording, const std::string& name,
                                     const std::vector<uint64_t>& skipped_bytes);

// The profile of recorded samples, by the dimensions of `out`, into `out`. Two passes over the
// samples and one over the trace. Errors: those of reading the samples; Internal: rows that do not
// sum to what was added.
absl::Status ProfileRecorded(const ProfileInput& input, const recording::Recording& recording,
                             const SampleSelection& selection, const RecordedProcesses& processes,
                             report::ProfileReport& out);

// The profile of the samples that the trace itself holds; `input` has a trace.
absl::Status ProfileTrace(const ProfileInput& input, report::ProfileReport& out);

}  // namespace xenoscope::cli
