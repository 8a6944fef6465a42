// Observes all steps of a profile: the items of the trace, the timeline that they make, and the
// samples as they are placed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/timeline.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::correlate {

class PipelineObserver : public PlacingObserver, public TimelineObserver {
 public:
  // Whether OnRecord is to be called for records of the event, beside the first record. Asked once.
  [[nodiscard]] virtual bool Wants(trace::Event /*event*/) const { return false; }
  // Receive records, and all other items, in the order of time, each before the timeline takes it.
  // A sample comes after all items of its bracket, often long after them.
  virtual void OnRecord(const trace::Record& /*record*/) {}
  virtual void OnNonRecord(const trace::Item& /*item*/) {}
  // An error ends the reading of the trace, which then fails with it.
  [[nodiscard]] virtual absl::Status status() const { return absl::OkStatus(); }
};

// Observes a trace: its items, and the timeline that they make (ObserveTrace). Unlike a
// PipelineObserver it sees no samples, so that these are refined on a thread of their own.
class TraceObserver : public TimelineObserver {
 public:
  // Whether OnRecord is to be called for records of the event. Asked once.
  [[nodiscard]] virtual bool Wants(trace::Event event) const = 0;
  // Receive records, and all other items, each before `timeline` takes it, in any
  // trace::RecordOrder.
  virtual void OnRecord(const trace::Record& record, const Timeline& timeline) = 0;
  virtual void OnNonRecord(const trace::Item& item) = 0;
  // The items have ended. The timeline then ends what is open.
  virtual void OnTraceEnd(const Timeline& timeline) = 0;
  // The timeline has ended what was open: nothing more comes.
  virtual void OnTimelineEnd() {}
};

// Returns who of the observers, which are 32 at most, want records of the event: a bit for each.
[[nodiscard]] inline uint32_t WhoWants(trace::Event event,
                                       std::span<TraceObserver* const> observers) {
  uint32_t who = 0;
  for (size_t i = 0; i < observers.size(); ++i) {
    if (observers[i]->Wants(event)) who |= 1U << i;
  }
  return who;
}

// Gives the record to those of the observers.
inline void ShowRecord(const trace::Record& record, const Timeline& timeline, uint32_t who,
                       std::span<TraceObserver* const> observers) {
  for (uint32_t rest = who; rest != 0; rest &= rest - 1) {
    observers[static_cast<size_t>(std::countr_zero(rest))]->OnRecord(record, timeline);
  }
}

// Who sees how samples are placed. Each may be null; they outlive what calls them.
struct PlacingObservers {
  // Sees each step, on the thread that reads the trace.
  PipelineObserver* pipeline = nullptr;
  // See the trace from its begin to somewhat after the end of the time that was chosen, while
  // samples are placed or in a pass of their own on another thread. Not called where samples are
  // not placed by a trace.
  std::vector<TraceObserver*> trace{};
  // Receives the samples, those that nothing tells apart as one with a count. It is called on
  // another thread if nothing sees each step, and no more after the last sample.
  PlacingObserver* samples = nullptr;
};

// Gives what a timeline says to several observers, which outlive this one.
class TimelineFanOut final : public TimelineObserver {
 public:
  // Those that are null are left out.
  explicit TimelineFanOut(std::vector<TimelineObserver*> all) : observers_(std::move(all)) {
    std::erase(observers_, nullptr);
    for (TimelineObserver* each : observers_) {
      if (each->WantsSegments()) of_segments_.push_back(each);
      if (each->WantsExits()) of_exits_.push_back(each);
      if (each->WantsMarks()) of_marks_.push_back(each);
    }
  }
  // Returns what a timeline is to call: null, the only observer, or all.
  [[nodiscard]] TimelineObserver* get() {
    if (observers_.empty()) return nullptr;
    return observers_.size() == 1 ? observers_.front() : this;
  }
  [[nodiscard]] bool WantsSegments() const override { return !of_segments_.empty(); }
  [[nodiscard]] bool WantsExits() const override { return !of_exits_.empty(); }
  [[nodiscard]] bool WantsMarks() const override { return !of_marks_.empty(); }
  void OnRunstateInterval(const RunstateInterval& interval) override {
    for (TimelineObserver* each : observers_) each->OnRunstateInterval(interval);
  }
  void OnSegment(const Segment& segment) override {
    for (TimelineObserver* each : of_segments_) each->OnSegment(segment);
  }
  void OnExit(const ExitArc& arc) override {
    for (TimelineObserver* each : of_exits_) each->OnExit(arc);
  }
  void OnMark(const Mark& mark) override {
    for (TimelineObserver* each : of_marks_) each->OnMark(mark);
  }
  void OnState(const VcpuTrack& vcpu, TimelineState before) override {
    for (TimelineObserver* each : observers_) each->OnState(vcpu, before);
  }
  void OnEntry(const VcpuTrack& vcpu, Tsc at) override {
    for (TimelineObserver* each : observers_) each->OnEntry(vcpu, at);
  }

 private:
  std::vector<TimelineObserver*> observers_;
  std::vector<TimelineObserver*> of_segments_;  // those who want them
  std::vector<TimelineObserver*> of_exits_;
  std::vector<TimelineObserver*> of_marks_;
};

// Gives everything to several observers, which outlive this one.
class FanOutObserver final : public PlacingObserver {
 public:
  explicit FanOutObserver(std::vector<PlacingObserver*> all) : observers_(std::move(all)) {}
  void Add(PlacingObserver* another) { observers_.push_back(another); }
  void OnPlaced(const PlacedSample& sample) override {
    for (PlacingObserver* each : observers_) each->OnPlaced(sample);
  }
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override {
    for (PlacingObserver* each : observers_) each->OnUnplaced(sample, why);
  }
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override {
    for (PlacingObserver* each : observers_) each->OnTraced(vcpu, context, time);
  }

 private:
  std::vector<PlacingObserver*> observers_;
};

}  // namespace xenoscope::correlate
