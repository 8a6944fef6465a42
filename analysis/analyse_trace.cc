#include "analysis/analyse_trace.h"

#include <string>
#include <utility>
#include <variant>

#include "analysis/count_trace.h"
#include "analysis/describe.h"
#include "analysis/limits.h"
#include "analysis/side_passes.h"
#include "analysis/trace_metadata.h"
#include "base/error.h"
#include "trace/probe.h"

namespace xenoscope::analysis {
namespace {

absl::Status CheckBytes(const TraceTotals& totals, const std::string& name) {
  const uint64_t accounted =
      totals.header_bytes + totals.record_bytes + totals.unread.damaged_bytes;
  if (accounted == totals.bytes) return absl::OkStatus();
  return InternalError("{}: {} bytes, but headers {} + records {} + damaged {} are {}", name,
                       totals.bytes, totals.header_bytes, totals.record_bytes,
                       totals.unread.damaged_bytes, accounted);
}

// Finds the vendor, without which exits have no names, if the first records did not show it: a
// guest that ran only briefly may have been missed.
void CompleteVendor(const trace::TraceFile& file, TraceMetadata& metadata) {
  if (metadata.dialect.vendor_source != trace::DialectSource::kUnknown) return;
  if (metadata.volume.Records(trace::Event::kHvmVmexit) == 0) return;
  const trace::Dialect dialect = trace::FindVendor(file);
  metadata.dialect.vendor = dialect.vendor;
  metadata.dialect.vendor_source = dialect.vendor_source;
}

// Whether clocks may differ: what the totals are of contradicts itself.
bool ClocksMayDiffer(const trace::TraceFile& file, const TraceTotals& totals) {
  return totals.faults.runstate_mismatches > 0 && file.index().pcpus.size() > 1;
}

// Whether the TSCs of guests are to be searched for, and can be found in records of this volume.
bool GuestClocksAreWanted(const TraceHints& hints, const trace::Volume& volume) {
  return hints.guest_clocks && volume.Records(trace::Event::kGuest) >= correlate::kLeastClockEvents;
}

// Begins the other passes for which the first partition has shown a reason by now.
void BeginSidePasses(const trace::TraceFile& file, const TraceHints& hints,
                     const TraceTotals& first, const trace::Volume& volume, SidePasses& side) {
  if (ClocksMayDiffer(file, first)) side.BeginSkews(first.faults.mismatches);
  if (GuestClocksAreWanted(hints, volume)) side.BeginGuestClocks();
}

// Adds to the totals and the metadata what the file, the volume of its records and other passes
// say.
void Complete(const trace::TraceFile& file, const TraceHints& hints, SidePasses& side,
              TraceTotals& totals, TraceMetadata& metadata) {
  totals.bytes = file.bytes().size();
  totals.header_bytes = file.index().header_bytes;
  totals.pcpus = file.index().pcpus.size();
  if (!file.index().pcpus.empty()) totals.first = file.Stream().next_tsc();
  const trace::RecordCount all = metadata.volume.Total();
  totals.records = all.records;
  totals.record_bytes = all.bytes;
  metadata.range = {totals.first, totals.last};
  metadata.unread = totals.unread;
  if (ClocksMayDiffer(file, totals)) {
    metadata.skews = side.Skews(metadata.range, totals.faults.mismatches);
  }
  if (GuestClocksAreWanted(hints, metadata.volume)) totals.guest_clocks = side.GuestClocks();
}

// How a trace is to be analysed again.
struct Again {
  trace::RecordOrder order = trace::RecordOrder::kGroups;
  size_t divide_over = 0;
  bool in_parts = true;
};

// Returns `Again` if the result depends on the order in which the records came, or on where the
// partitions begin: never in the order of time without partitions.
absl::StatusOr<std::variant<AnalysisResult, Again>> Analyse(const trace::TraceFile& file,
                                                            const TraceHints& hints,
                                                            const CountingOptions& options,
                                                            const TraceDivision& division) {
  AnalysisResult result;
  SidePasses side(file);
  CountedTrace counted = CountTrace(file, options, division,
                                    {[&] { result.metadata = ProbeTraceMetadata(file, hints); },
                                     [&](const TraceTotals& first, const trace::Volume& volume) {
                                       BeginSidePasses(file, hints, first, volume, side);
                                     }});
  if (counted.refused) return Again{.divide_over = counted.met};
  const bool depends = counted.depends_on_order || counted.totals.faults.vcpus_over_limit > 0;
  const bool one_order = division.begins.empty() && (options.order == trace::RecordOrder::kTime ||
                                                     file.index().pcpus.size() < 2);
  if (depends && !one_order) return Again{trace::RecordOrder::kTime, options.divide_over, false};
  if (counted.cut) return Again{options.order, options.divide_over, false};
  result.partitions_repeated = counted.partitions_repeated;
  result.metadata.volume = std::move(counted.volume);
  TraceTotals& totals = result.trace = std::move(counted.totals);
  result.metadata.vcpus = counted.vcpus.size();
  Complete(file, hints, side, totals, result.metadata);
  XENOSCOPE_RETURN_IF_ERROR(CheckBytes(totals, file.name()));
  XENOSCOPE_RETURN_IF_ERROR(
      CheckLimits(file, totals.faults, result.metadata.vcpus, result.metadata.range));

  CompleteVendor(file, result.metadata);
  result.document =
      DescribeAll(*counted.analyses, counted.vcpus, result.metadata,
                  division.begins.empty() ? DescribeOn::kOneThread : DescribeOn::kAllThreads);
  result.analyses = counted.analyses;
  result.kept = std::move(counted.kept);
  return result;
}

}  // namespace

absl::StatusOr<AnalysisResult> AnalyseDivision(const trace::TraceFile& file,
                                               const TraceHints& hints, const MakeAnalyses& make,
                                               const TraceDivision& division,
                                               uint64_t window_bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      auto result,
      Analyse(file, hints, {make, trace::RecordOrder::kGroups, 0, window_bytes}, division));
  while (const Again* again = std::get_if<Again>(&result)) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        result, Analyse(file, hints, {make, again->order, again->divide_over, window_bytes},
                        again->in_parts ? division : TraceDivision{}));
  }
  return std::get<AnalysisResult>(std::move(result));
}

absl::StatusOr<AnalysisResult> AnalyseTrace(const trace::TraceFile& file, const TraceHints& hints,
                                            const MakeAnalyses& make, unsigned threads) {
  return AnalyseDivision(file, hints, make, DivideTrace(file, threads));
}

}  // namespace xenoscope::analysis
