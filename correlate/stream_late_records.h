// Gives the late records of a stream to whoever takes its records in the order
// trace::RecordOrder::kCrossing.
#pragma once

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/cursor.h"
#include "trace/ordered_stream.h"

namespace xenoscope::correlate {

template <typename Target, trace::RecordHandler<Target> Handler>
class StreamLateRecords final : public LateRecords {
 public:
  // All of them outlive this. `events` and `handler` are those of OrderedStream::ForEach.
  StreamLateRecords(trace::OrderedStream& stream, const trace::EventTargets<Target>& events,
                    Handler& handler)
      : stream_(stream), events_(events), handler_(handler) {}
  void CatchUp(PcpuId pcpu, PcpuId by, Tsc at) override {
    stream_.CatchUp(pcpu, by, at, events_, handler_);
  }

 private:
  trace::OrderedStream& stream_;
  const trace::EventTargets<Target>& events_;
  Handler& handler_;
};

}  // namespace xenoscope::correlate
