// Runs an observer of a trace on a thread of its own, while the trace is read on:
//
//   Timeline --batches of what it says--> (the thread) --> observer
//
// Memory: the batches, a few megabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "correlate/batch_thread.h"
#include "correlate/pipeline_observer.h"
#include "correlate/timeline.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::correlate {

// Observes a trace as a TraceObserver does, but for the states of the timeline, which has gone on
// when this sees what it said.
class DetachedObserver {
 public:
  virtual ~DetachedObserver() = default;
  // Those of TraceObserver and TimelineObserver.
  [[nodiscard]] virtual bool Wants(trace::Event event) const = 0;
  virtual void OnRecord(const trace::Record& record) = 0;
  virtual void OnNonRecord(const trace::Item& item) = 0;
  virtual void OnRunstateInterval(const RunstateInterval& interval) = 0;
  virtual void OnSegment(const Segment& segment) = 0;
  virtual void OnExit(const ExitArc& arc) = 0;
  virtual void OnMark(const Mark& mark) = 0;
};

class TraceObserverThread final : public TraceObserver {
 public:
  // `observer` outlives this, and is used by the thread alone until OnTimelineEnd has returned. It
  // receives everything in the order in which it came.
  explicit TraceObserverThread(DetachedObserver& observer);

  [[nodiscard]] bool Wants(trace::Event event) const override { return observer_.Wants(event); }
  void OnRecord(const trace::Record& record, const Timeline& /*timeline*/) override {
    Put(Kind::kRecord, batches_.Current().records, record);
  }
  void OnNonRecord(const trace::Item& item) override {
    Put(Kind::kNonRecord, batches_.Current().non_records, item);
  }
  void OnRunstateInterval(const RunstateInterval& interval) override {
    Put(Kind::kRunstateInterval, batches_.Current().intervals, interval);
  }
  void OnSegment(const Segment& segment) override {
    Put(Kind::kSegment, batches_.Current().segments, segment);
  }
  void OnExit(const ExitArc& arc) override { Put(Kind::kExit, batches_.Current().exits, arc); }
  void OnMark(const Mark& mark) override { Put(Kind::kMark, batches_.Current().marks, mark); }
  void OnTraceEnd(const Timeline& /*timeline*/) override {}
  void OnTimelineEnd() override { Finish(); }

 private:
  enum class Kind : uint8_t { kRecord, kNonRecord, kRunstateInterval, kSegment, kExit, kMark };
  struct Batch {
    std::vector<Kind> kinds;  // what came, in order; each of the others has those of one kind
    std::vector<trace::Record> records;
    std::vector<trace::Item> non_records;
    std::vector<RunstateInterval> intervals;
    std::vector<Segment> segments;
    std::vector<ExitArc> exits;
    std::vector<Mark> marks;
  };
  // The most things of a batch: so few that the second thread finds them in a cache.
  static constexpr size_t kMaxThings = 1024;

  template <typename Thing>
  void Put(Kind kind, std::vector<Thing>& things, const Thing& thing) {
    std::vector<Kind>& kinds = batches_.Current().kinds;
    kinds.push_back(kind);
    things.push_back(thing);
    if (kinds.size() >= kMaxThings) batches_.Submit();
  }
  // Returns when the observer has received everything. Nothing may come after that.
  void Finish() { batches_.Finish(); }
  void DeliverBatch(Batch& batch);

  DetachedObserver& observer_;
  BatchThread<Batch, 16> batches_;
};

}  // namespace xenoscope::correlate
