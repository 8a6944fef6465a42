#include "correlate/trace_observer_thread.h"

namespace xenoscope::correlate {

TraceObserverThread::TraceObserverThread(DetachedObserver& observer)
    : observer_(observer), batches_([this](Batch& batch) { DeliverBatch(batch); }) {}

void TraceObserverThread::DeliverBatch(Batch& batch) {
  auto record = batch.records.begin();
  auto non_record = batch.non_records.begin();
  auto interval = batch.intervals.begin();
  auto segment = batch.segments.begin();
  auto exit = batch.exits.begin();
  auto mark = batch.marks.begin();
  for (const Kind kind : batch.kinds) {
    switch (kind) {
      case Kind::kRecord:
        observer_.OnRecord(*record++);
        break;
      case Kind::kNonRecord:
        observer_.OnNonRecord(*non_record++);
        break;
      case Kind::kRunstateInterval:
        observer_.OnRunstateInterval(*interval++);
        break;
      case Kind::kSegment:
        observer_.OnSegment(*segment++);
        break;
      case Kind::kExit:
        observer_.OnExit(*exit++);
        break;
      case Kind::kMark:
        observer_.OnMark(*mark++);
        break;
    }
  }
  batch.kinds.clear();
  batch.records.clear();
  batch.non_records.clear();
  batch.intervals.clear();
  batch.segments.clear();
  batch.exits.clear();
  batch.marks.clear();
}

}  // namespace xenoscope::correlate
