#include "analysis/trace_pass.h"

#include <algorithm>
#include <cstdint>

#include "analysis/limits.h"
#include "analysis/record_pipeline.h"
#include "analysis/trace_metadata.h"
#include "base/error.h"
#include "correlate/clocks.h"
#include "correlate/pcpu_groups.h"
#include "trace/cursor.h"
#include "trace/ordered_stream.h"
#include "trace/record.h"
#include "trace/unread_counts.h"

namespace xenoscope::analysis {
namespace {

// Gives all to a pipeline, and counts what could not be read.
struct CountingHandler {
  RecordPipeline& pipeline;
  trace::UnreadCounts unread{};
  void TakeRecord(const trace::Record& record, const Dispatcher::EventRoute& route) const {
    pipeline.TakeRecord(record, route);
  }
  void TakeNonRecord(const trace::Item& item) {
    unread.Count(item);
    pipeline.TakeNonRecord(item);
  }
};

// Ends the pipeline.
void Finish(RecordPipeline& pipeline, const std::vector<Subscriber*>& subscribers) {
  pipeline.Finish();
  for (Subscriber* subscriber : subscribers) subscriber->Finish(pipeline.timeline().now());
}

}  // namespace

absl::StatusOr<TraceMetadata> PassOverTrace(const trace::TraceFile& file, const TraceHints& hints,
                                            const std::vector<Subscriber*>& subscribers) {
  TraceMetadata metadata = ProbeTraceMetadata(file, hints);
  RecordPipeline pipeline(subscribers);
  trace::OrderedStream stream = file.Stream();
  if (!file.index().pcpus.empty()) metadata.range.begin = stream.next_tsc();
  CountingHandler handler{pipeline};
  pipeline.Pass<true>(stream, stream.kEnd, handler);
  Finish(pipeline, subscribers);
  metadata.unread = handler.unread;
  metadata.range.end = pipeline.timeline().now();
  XENOSCOPE_RETURN_IF_ERROR(CheckLimits(file, pipeline.timeline().faults(),
                                        pipeline.timeline().vcpus().size(), metadata.range));
  metadata.vcpus = pipeline.timeline().vcpus().size();
  const correlate::TimelineFaults& faults = pipeline.timeline().faults();
  if (faults.runstate_mismatches > 0) {
    metadata.skews = correlate::CompareClocks(file, metadata.range, faults.mismatches);
  }
  return metadata;
}

absl::Status PassOverIntervals(const trace::TraceFile& file,
                               const std::vector<Subscriber*>& subscribers, Cycles length,
                               const OnInterval& on_interval) {
  RecordPipeline pipeline(subscribers);
  // A search for groups costs more than it saves in short intervals.
  if (length < correlate::kLeastGrouped) pipeline.Require(trace::RecordOrder::kCrossing);
  trace::OrderedStream stream = file.Stream();
  if (stream.next_tsc() == stream.kEnd) {
    Finish(pipeline, subscribers);
    return absl::OkStatus();
  }
  TscRange interval{stream.next_tsc(), stream.next_tsc() + length};
  uint64_t intervals = 0;
  for (;;) {
    pipeline.Pass<false>(stream, Tsc{interval.end.value - 1}, pipeline);
    if (stream.next_tsc() == stream.kEnd) break;
    // Those up to the next record are counted at once: it may be years later in a damaged trace.
    const Tsc next = std::max(stream.next_tsc(), interval.end);
    if (++intervals + (next - interval.end) / length >= kMaxIntervals) {
      return InvalidError("{}: more than {} intervals; choose a longer one", file.name(),
                          kMaxIntervals);
    }
    XENOSCOPE_RETURN_IF_ERROR(on_interval(interval, pipeline.timeline()));
    interval = TscRange{interval.end, interval.end + length};
  }
  Finish(pipeline, subscribers);
  // The range is half-open: it ends one cycle after the last record.
  return on_interval({interval.begin, std::min(interval.end, pipeline.timeline().now() + 1)},
                     pipeline.timeline());
}

}  // namespace xenoscope::analysis
