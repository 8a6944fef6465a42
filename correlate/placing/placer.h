// Joins samples with the trace: when and where each was taken, and in which context. The place is
// exact where the sample says when it was taken, where its vCPU was stopped to be read, and where
// it is an NMI exit of the trace. Else it is spread by weights over the places where the sample can
// have been (docs/method.md, sections 1 to 3).
//
// One pass over trace and samples together. Memory: the intervals of the timeline within the
// longest bracket and ClockedDrains::kHeld, and the samples of the drains in that time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/tsc.h"
#include "correlate/cross_checks.h"
#include "correlate/placing/candidate_finder.h"
#include "correlate/placing/drain.h"
#include "correlate/placing/options.h"
#include "correlate/placing/outcome.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/placing/recent_timeline.h"
#include "correlate/placing/virtual_interrupt.h"
#include "correlate/run_queues.h"
#include "correlate/timeline.h"
#include "recording/sample.h"
#include "trace/record.h"

namespace xenoscope::correlate {

class ClockedDrains;

struct PlacingCounts : SampleCounts, TraceCounts {};

class Placer {
 public:
  // `samples`, `observer` and `timeline_observer`, which sees the placer's timeline and may be
  // null, outlive the placer.
  Placer(const PlacingOptions& options, SampleSource& samples, PlacingObserver& observer,
         TimelineObserver* timeline_observer = nullptr);
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;
  Placer(Placer&&) = delete;
  Placer& operator=(Placer&&) = delete;
  ~Placer();

  // Returns what takes the records of the event.
  using Taker = RecentTimeline::Taker;
  [[nodiscard]] Taker TakerOf(trace::Event event) const { return timeline_.TakerOf(event); }
  // Takes the next item of the trace in the order of time, and places the samples whose brackets
  // have passed.
  void Take(const trace::Item& item);
  // Places the samples that the source has by now, as far as their brackets have passed.
  void PlaceDue();
  // Whether samples have been read that are not placed yet.
  [[nodiscard]] bool has_waiting() const { return !batch_.empty(); }
  // Returns the time before which no sample is to be placed, but those of PlacingOptions::of_trace,
  // by PlaceDue; it is later than now(). The items before it may instead be taken by TakeRecord and
  // TakeNonRecord, in the order of the options and without the records that nothing takes. O(1).
  [[nodiscard]] Tsc deadline() const;
  void TakeRecord(const trace::Record& record, const Taker& taker) {
    timeline_.TakeRecord(record, taker);
  }
  void TakeNonRecord(const trace::Item& item) { timeline_.TakeNonRecord(item); }
  // Timeline::SetLateRecords.
  void SetLateRecords(LateRecords* late) { timeline_.SetLateRecords(late); }
  // Places the samples that are left. Internal: a sample is neither placed nor in a remainder, or
  // its weights do not sum to 1.
  [[nodiscard]] absl::Status Finish();

  [[nodiscard]] PlacingCounts counts() const { return {outcome_.counts(), timeline_.counts()}; }
  // Returns the checks of the domains that have samples, in the order of domains.
  [[nodiscard]] std::vector<PlacingCheck> Checks() const { return checks_.Conclude(); }
  // The sets of vCPUs that waited for a pCPU, by Context::waiting.
  [[nodiscard]] const std::vector<WaitingSet>& waiting_sets() const {
    return timeline_.waiting_sets();
  }
  [[nodiscard]] const Timeline& timeline() const { return timeline_.timeline(); }
  // RecentTimeline::settled_until.
  [[nodiscard]] Tsc settled_until() const { return timeline_.settled_until(); }

 private:
  // Reads the next samples of one vCPU and bracket, if there are any yet.
  void ReadBatch();
  // Whether all that the batch waits for has been taken.
  [[nodiscard]] bool IsDue() const {
    return options_.of_trace || timeline_.settled_until() >= batch_.front().when.end;
  }
  void PlaceBatch();
  // Places the samples of one drain, or holds them.
  void PlaceDrain();
  // Places held drains of which the sampling clock says no more; `at_end`: all.
  void PlaceHeld(bool at_end);
  // Forgets the part of the timeline that no further sample can ask for.
  void Forget();

  PlacingOptions options_;
  SampleSource& samples_;
  CrossChecks checks_;
  RecentTimeline timeline_;
  CandidateFinder finder_;
  PlacingOutcome outcome_;
  DrainPlacer drain_;
  std::unique_ptr<ClockedDrains> held_;
  VirtualInterruptPlacer virtual_interrupts_;
  std::vector<recording::Sample> batch_;
  // The source's next sample, which is not in the batch; null where it had none.
  const recording::Sample* next_ = nullptr;
  Tsc forgotten_;  // intervals that end at or before this are gone
  Tsc forget_at_;
};

// Gives every sample to the observer as kUntraced, where there is no trace to join it with. Samples
// that know their time get the thread of their vCPU, if `threads` is not null.
[[nodiscard]] PlacingCounts PlaceWithoutTrace(SampleSource& samples, ThreadSource* threads,
                                              PlacingObserver& observer);

}  // namespace xenoscope::correlate
