#include "analysis/trace_pass.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analysis/limits.h"
#include "analysis/record_pipeline.h"
#include "analysis/trace_metadata.h"
#include "base/error.h"
#include "correlate/clocks.h"
#include "trace/ordered_stream.h"

namespace xenoscope::analysis {
namespace {

using trace::Item;
using trace::ItemKind;

// Ends the pipeline.
void Finish(RecordPipeline& pipeline, const std::vector<std::unique_ptr<Subscriber>>& subscribers) {
  pipeline.Finish();
  for (const auto& subscriber : subscribers) subscriber->Finish(pipeline.timeline().now());
}

}  // namespace

absl::StatusOr<TraceMetadata> PassOverTrace(
    const trace::TraceFile& file, const TraceHints& hints,
    const std::vector<std::unique_ptr<Subscriber>>& subscribers) {
  TraceMetadata metadata = ProbeTraceMetadata(file, hints);
  RecordPipeline pipeline(SubscribersOf(subscribers));
  trace::OrderedStream stream = file.Stream();
  if (!file.index().pcpus.empty()) metadata.range.begin = stream.next_tsc();
  pipeline.Pass<true>(stream, stream.kEnd, pipeline);
  Finish(pipeline, subscribers);
  metadata.range.end = pipeline.timeline().now();
  XENOSCOPE_RETURN_IF_ERROR(CheckLimits(file, pipeline.timeline().faults(),
                                        pipeline.timeline().vcpus().size(), metadata.range));
  metadata.vcpus = pipeline.timeline().vcpus().size();
  if (pipeline.timeline().faults().runstate_mismatches > 0) {
    metadata.skews = correlate::CompareClocks(file, metadata.range);
  }
  return metadata;
}

absl::Status PassOverIntervals(const trace::TraceFile& file,
                               const std::vector<std::unique_ptr<Subscriber>>& subscribers,
                               Cycles length, const OnInterval& on_interval) {
  RecordPipeline pipeline(SubscribersOf(subscribers));
  std::optional<TscRange> interval;
  uint64_t intervals = 0;
  trace::OrderedStream stream = file.Stream();
  while (const Item* item = stream.Next()) {
    if (!interval && item->kind == ItemKind::kPcpuBegin) {
      interval = TscRange{item->record.tsc, item->record.tsc + length};
    }
    while (interval && item->record.tsc >= interval->end) [[unlikely]] {
        if (++intervals >= kMaxIntervals) {
          return InvalidError("{}: more than {} intervals; choose a longer one", file.name(),
                              kMaxIntervals);
        }
        XENOSCOPE_RETURN_IF_ERROR(on_interval(*interval, pipeline.timeline()));
        interval = TscRange{interval->end, interval->end + length};
      }
    pipeline.Take(*item);
  }
  Finish(pipeline, subscribers);
  if (!interval) return absl::OkStatus();
  // The range is half-open: it ends one cycle after the last record.
  return on_interval({interval->begin, std::min(interval->end, pipeline.timeline().now() + 1)},
                     pipeline.timeline());
}

}  // namespace xenoscope::analysis
