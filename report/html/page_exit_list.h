// The page's list of VM exits, and of what PV guests did in Xen, as the timeline reports them. They
// are counted on a thread of their own, as counting takes long:
//
//   PageTimeline --batches of exits--> (the thread) --> ExitCounts
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/tsc.h"
#include "correlate/batch_thread.h"
#include "correlate/pv_entries.h"
#include "correlate/timeline.h"
#include "report/html/exit_counts.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

class PageExitList {
 public:
  // The report must outlive this. It must have its vendor, names and sampled range, which is the
  // range shown, before the first exit.
  explicit PageExitList(const ProfileReport& report) : report_(report), counts_(report) {}

  // Says which part of the exits has come, in [0, 1], roughly (BinnedSums::SetPartCome).
  void SetPartCome(double part) { batch_->part_come = part; }
  // Adds the part `shown` of an exit's time. O(1).
  void AddTime(const correlate::Segment& segment, TscRange shown) {
    Add(segment.vcpu.domain, CauseOf(segment.nested), Counted::kTime, segment.reason, shown);
  }
  // Adds an exit that is finished, without its time. O(1).
  void AddExit(const correlate::ExitArc& arc) {
    const Tsc begin = std::max(arc.range.begin, report_.sampled.begin);
    Add(arc.vcpu.domain, CauseOf(arc.nested), Counted::kLength, arc.reason,
        {begin, begin + arc.range.Length()});
  }
  // Adds an exit that is finished, with its time, which is all shown. O(1).
  void AddWholeExit(const correlate::ExitArc& arc) {
    Add(arc.vcpu.domain, CauseOf(arc.nested), Counted::kAll, arc.reason, arc.range);
  }
  // Add what PV guests did in Xen, with its bounds. O(1).
  void OnMark(const correlate::Mark& mark) {
    pv_entries_.OnMark(mark, [this](const auto&... entry) { AddEntry(entry...); });
  }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) {
    pv_entries_.OnRunstateInterval(interval, [this](const auto&... entry) { AddEntry(entry...); });
  }
  // Adds what no record has bounded, after the last one, and counts what is not counted yet. To be
  // called once.
  void Finish() {
    pv_entries_.Finish([this](const auto&... entry) { AddEntry(entry...); });
    thread_.Finish();
    counts_.Finish();
  }

  // What was counted, after Finish.
  [[nodiscard]] const ExitCounts& counts() const { return counts_; }

 private:
  struct Batch {
    size_t count = 0;
    double part_come = 1;
    std::array<CountedExit, 4096> exits;
  };

  [[nodiscard]] static ExitCause CauseOf(bool nested) {
    return nested ? ExitCause::kNestedExit : ExitCause::kExit;
  }
  // Written in its place: a copy of what was written just before would wait until that is in the
  // cache.
  [[gnu::always_inline]] void Add(DomainId domain, ExitCause cause, Counted counted,
                                  uint32_t reason, TscRange range) {
    CountedExit& exit = batch_->exits[batch_->count];
    exit.domain = domain;
    exit.cause = cause;
    exit.counted = counted;
    exit.reason = reason;
    exit.begin = range.begin;
    exit.length = range.Length();
    if (++batch_->count == batch_->exits.size()) [[unlikely]] {
      thread_.Submit();
      batch_ = &thread_.Current();
    }
  }
  // Adds what a PV guest did in Xen, and how long at most.
  void AddEntry(const correlate::Mark& mark, TscRange at_most) {
    Add(mark.vcpu.domain, ExitCause::kMark, Counted::kAll, MarkReason(mark), at_most);
  }

  const ProfileReport& report_;
  correlate::PvEntryBounds pv_entries_{report_.sampled};
  ExitCounts counts_;
  // After what it uses: it ends before.
  correlate::BatchThread<Batch, 16, 8> thread_{[this](Batch& batch) {
    counts_.Take(std::span(batch.exits).first(batch.count), batch.part_come);
    batch.count = 0;
  }};
  Batch* batch_ = &thread_.Current();
};

}  // namespace xenoscope::report
