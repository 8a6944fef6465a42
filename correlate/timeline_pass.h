// Passes over a trace for a timeline alone.
#pragma once

#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/ordered_stream.h"

namespace xenoscope::correlate {

// Gives the timeline all that changes something in it: the items before the time `end` and, if
// there are more, the next item, so that what is open lasts until `end` or longer. They come in the
// order trace::RecordOrder::kCrossing: the observer gets all that concerns one vCPU or one pCPU in
// the order of time.
void PassToTimeline(trace::OrderedStream& stream, Tsc end, Timeline& timeline);

}  // namespace xenoscope::correlate
