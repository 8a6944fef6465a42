// What every vCPU and pCPU did, as far back as the longest bracket reaches: the timeline, kept so
// that samples can be looked up in it (docs/method.md, sections 1 and 3).
//
// Memory: the intervals, exits and stops within the longest bracket.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/context_switches.h"
#include "correlate/cross_checks.h"
#include "correlate/exit_contents.h"
#include "correlate/losses.h"
#include "correlate/placing/options.h"
#include "correlate/placing/pcpu_history.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/placing/running_threads.h"
#include "correlate/placing/unsampled_switches.h"
#include "correlate/placing/vcpu_history.h"
#include "correlate/run_queues.h"
#include "correlate/timeline.h"
#include "correlate/timeline_history.h"
#include "trace/record.h"
#include "trace/unread_counts.h"

namespace xenoscope::correlate {

// What the trace has, as far as it was taken.
struct TraceCounts {
  uint64_t nmi_exits = 0;  // while samples were taken
  uint64_t lost_records = 0;
  Cycles lost_time = 0;  // of pCPUs, in which records were lost
  trace::UnreadCounts unread;
};

// The parts of a range in which a vCPU may have run without a record, in cycles.
struct UnobservedTime {
  Cycles lost = 0;   // while records were lost
  Cycles ended = 0;  // behind the end of a pCPU's trace
};

class RecentTimeline : private TimelineObserver {
 public:
  // `observer` receives the traced time, `checks` the timeslices, and `next`, which may be null,
  // all that the timeline tells its observers. All outlive this.
  RecentTimeline(const PlacingOptions& options, PlacingObserver& observer, CrossChecks& checks,
                 TimelineObserver* next);

  // What takes the records of an event.
  struct Taker {
    Timeline::RecordHandler* timeline = nullptr;  // null: they change nothing in the timeline
    bool noted = false;                           // NoteRecord takes them
    // Whether they change anything here but the time.
    [[nodiscard]] bool Takes() const { return timeline != nullptr || noted; }
  };
  [[nodiscard]] Taker TakerOf(trace::Event event) const {
    return {timeline_.HandlerOf(event), noted_events_[static_cast<size_t>(event)]};
  }
  // Takes the next item of the trace in the order of time: all that comes before it has been taken.
  // O(1) amortised.
  void Take(const trace::Item& item) {
    threads_.Advance(item.record.tsc);
    if (item.kind == trace::ItemKind::kRecord) [[likely]] {
      if (!trace_begin_) trace_begin_ = item.record.tsc;
      timeline_.TakeRecord(item.record);
      Note(item.record);
    } else {
      TakeNonRecord(item);
    }
    // Here alone now() is the same in each order.
    if (!unsettled_.empty()) SettleOld();
  }
  // Take the next record or item in the order of the options. Records whose `taker`, that of their
  // event, takes nothing may be left out, but for those before the first one. O(1) amortised.
  void TakeRecord(const trace::Record& record, const Taker& taker) {
    threads_.Advance(record.tsc);
    if (options_.order == trace::RecordOrder::kTime) {
      timeline_.TakeRecord(record);
    } else if (taker.timeline != nullptr) {
      timeline_.TakeCrossingOrder(record, *taker.timeline);
    }
    if (taker.noted) NoteRecord(record);
  }
  void TakeNonRecord(const trace::Item& item) {
    threads_.Advance(item.record.tsc);
    TakeLossItem(item);
    timeline_.TakeNonRecord(item);
  }
  // Whether a record has been taken.
  [[nodiscard]] bool begun() const { return trace_begin_.has_value(); }
  // Timeline::SetLateRecords.
  void SetLateRecords(LateRecords* late) { timeline_.SetLateRecords(late); }
  // Ends what is open, and gives the observer the traced time that it has not had yet.
  void Finish();
  // Forgets what ended before `t`; of HVM vCPUs, whose drains may be held, what ended before
  // `held`, which is not later. O(1) for each thing that is forgotten, and for each vCPU.
  void DropBefore(Tsc t, Tsc held);

  [[nodiscard]] Tsc now() const { return timeline_.now(); }
  [[nodiscard]] const Timeline& timeline() const { return timeline_; }
  // Returns the instant before which it is known what each exit is about, if
  // PlacingOptions::by_subreason; at most now(). O(1).
  [[nodiscard]] Tsc settled_until() const {
    return unsettled_.empty() ? now() : std::min(now(), settled_until_);
  }
  [[nodiscard]] const TraceCounts& counts() const { return counts_; }
  // The sets of vCPUs that waited for a pCPU, by Context::waiting.
  [[nodiscard]] const std::vector<WaitingSet>& waiting_sets() const { return run_queues_.sets(); }

  // Returns the vCPU's track, or null when the trace has not named it. O(1) amortised.
  [[nodiscard]] const VcpuTrack* Find(VcpuRef vcpu);
  // Returns the track of the vCPU that runs on the pCPU, or null.
  [[nodiscard]] const VcpuTrack* Current(PcpuId pcpu) const { return timeline_.Current(pcpu); }
  // Valid until another vCPU is met.
  [[nodiscard]] VcpuHistory& HistoryOf(const VcpuTrack& track) { return VcpuAt(track.index); }
  // Counts a sample of the profile's own event in the vCPU, by the mode of what it interrupted and
  // its weight in lost time.
  void AddSample(const VcpuTrack& track, Mode mode, double in_lost);
  // Notes which domains have samples of the profile's own event in Xen. O(1), but for the first
  // one.
  void NotePlaced(const PlacedSample& placed) {
    if (placed.mode() != Mode::kXen || options_.beside[placed.sample->event]) return;
    unsampled_switches_.NoteSample(placed.vcpu.domain);
  }
  // Gives the observer the time that depended on further samples.
  void FinishSamples() { unsampled_switches_.Finish(); }
  [[nodiscard]] const SampleRate& sample_rate() const { return sample_rate_; }
  // Returns which vCPUs the pCPU ran, or null when nothing ran on it.
  [[nodiscard]] const PcpuHistory* HistoryOf(PcpuId pcpu) const {
    return pcpu.value < pcpus_.size() ? &pcpus_[pcpu.value] : nullptr;
  }
  // Returns the completed interval that the pCPU was in at the instant, or null. O(log intervals).
  [[nodiscard]] const TimelineInterval* IntervalOn(PcpuId pcpu, Tsc at) const;
  // Returns what the vCPU has been doing since its last completed interval, if that is known.
  [[nodiscard]] std::optional<TimelineInterval> OpenInterval(const VcpuTrack& track) const;
  // Calls visit(interval) for the parts of OpenInterval that differ in which vCPUs wait, or in the
  // thread.
  template <typename Visitor>
  void ForEachOpen(const VcpuTrack& track, Visitor visit) const;
  [[nodiscard]] UnobservedTime UnobservedTimeIn(TscRange range) const;
  // The cycles that a vCPU is in Xen for each VMENTRY and VMEXIT, outside the time from VMEXIT to
  // VMENTRY, by what has been placed so far.
  [[nodiscard]] double cycles_per_transition() const { return cycles_per_transition_; }
  // Whether no part of the bracket is within the trace, as far as it was taken.
  [[nodiscard]] bool OutsideTrace(TscRange bracket) const;

 private:
  [[nodiscard]] bool WantsExits() const override { return next_ != nullptr && next_->WantsExits(); }
  [[nodiscard]] bool WantsMarks() const override { return next_ != nullptr && next_->WantsMarks(); }
  void OnSegment(const Segment& segment) override;
  void OnRunstateInterval(const RunstateInterval& interval) override;
  void OnExit(const ExitArc& arc) override;
  void OnMark(const Mark& mark) override;
  void OnState(const VcpuTrack& track, TimelineState before) override;

  VcpuHistory& VcpuAt(uint32_t index) {
    if (index >= vcpus_.size()) [[unlikely]] {
      MakeVcpu(index);
    }
    return vcpus_[index];
  }
  [[gnu::noinline]] void MakeVcpu(uint32_t index) { vcpus_.resize(size_t{index} + 1); }
  PcpuHistory& PcpuAt(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) [[unlikely]] {
      MakePcpu(pcpu);
    }
    return pcpus_[pcpu.value];
  }
  [[gnu::noinline]] void MakePcpu(PcpuId pcpu) { pcpus_.resize(size_t{pcpu.value} + 1); }
  // Sets the context to that of what a vCPU does, with what the options ask to say of an exit, but
  // sets neither which vCPUs wait, nor the thread.
  void SetContext(const VcpuHistory& vcpu, SegmentKind kind, bool nested, uint32_t reason,
                  uint64_t exit, Context& context) const;
  // Calls visit(part, waiting, thread) for the parts of a range in which a vCPU runs that differ in
  // which vCPUs wait, or in the thread, where the options ask for these.
  template <typename Visitor>
  void ForEachPart(VcpuRef vcpu, PcpuId pcpu, TscRange range, const Visitor& visit) const;
  // So many intervals of a vCPU, and runs of a pCPU, hold the instant of an exit that has just been
  // shown: only its handling, and switches to other vCPUs, come after it
  // (PlacingOptions::of_trace).
  static constexpr size_t kKept = 8;
  // Returns a new interval of the vCPU, which has the index `index`, for samples that can have been
  // in it. The caller sets its context, and of which timeslice it is: in its place, as a copy of
  // what was written just before would wait until that is in the cache.
  [[gnu::always_inline]] TimelineInterval& NewInterval(VcpuHistory& vcpu, uint32_t index,
                                                       VcpuRef ref, PcpuId pcpu, TscRange range) {
    if (options_.of_trace) vcpu.intervals.KeepLast(kKept);
    // Samples of the trace are looked up by pCPU only where it was idle.
    if (!options_.of_trace || IsIdle(ref)) {
      PcpuHistory& runs = PcpuAt(pcpu);
      if (options_.of_trace) runs.KeepLast(kKept);
      runs.Add(range, ref, index, vcpu.intervals.added());
    }
    TimelineInterval& interval = vcpu.intervals.Append();
    interval.range = range;
    interval.vcpu = ref;
    interval.pcpu = pcpu;
    return interval;
  }
  // What OnSegment finds of a segment before it adds the segment's parts.
  struct SegmentPlace {
    VcpuHistory& vcpu;
    Tsc begin;           // of the first part
    Cycles sampled = 0;  // cycles of the segment
    bool unsettled = false;
  };
  // Returns the cycles of the range that are sampled: mostly all or none.
  [[nodiscard]] Cycles SampledIn(TscRange range) const {
    const bool whole = options_.sampled.begin <= range.begin && range.end <= options_.sampled.end;
    return whole ? range.Length() : range.Intersect(options_.sampled).Length();
  }
  // Adds the interval of a part of the segment, with its time.
  void AddPart(const Segment& segment, const SegmentPlace& place, TscRange part, uint32_t waiting,
               uint32_t thread);
  // Adds the part's time.
  void AddTime(const Segment& segment, const SegmentPlace& place, TscRange part,
               const Context& context);
  // Whether samples may be spread over several places by weights: those of the trace itself are at
  // known instants.
  [[nodiscard]] bool WeighsPlaces() const { return !options_.of_trace; }
  // Whether ForEachPart may call for several parts, or with more than 0.
  [[nodiscard]] bool DividesRanges() const { return options_.by_waiting || threads_.known(); }
  // Adds the time of a switch to the intervals of both vCPUs: samples that are logged for the one
  // that stops can be there, too.
  void AddSwitch(const ContextSwitch& context_switch);
  // Whether a later record of the same exit may say what the part of an exit is about.
  [[nodiscard]] bool IsUnsettled(const Segment& segment, const VcpuHistory& vcpu) const;
  // Gives the parts of the vCPU's unsettled exit the context that is known now.
  void Settle(uint32_t index);
  // Settles exits that began too long ago.
  void SettleOld();
  // Adds time of the vCPU in which records were lost.
  void AddLost(VcpuHistory& vcpu, const RunstateInterval& interval);
  [[nodiscard]] bool IsNmi(uint32_t reason) const;
  void TakeLossItem(const trace::Item& item);
  void Note(const trace::Record& record) {
    if (noted_events_[static_cast<size_t>(record.event)]) NoteRecord(record);
  }
  // Notes what the timeline does not keep of the record.
  void NoteRecord(const trace::Record& record);
  void NoteExit(const VcpuTrack& track, VcpuHistory& vcpu) const;
  // Notes what the open exit is about, from a record of its handler.
  void NoteContents(const trace::Record& record, const VcpuTrack& track, VcpuHistory& vcpu);
  // Returns the place of what an exit was about in recent_subreasons_.
  [[nodiscard]] static size_t PlaceOf(const ExitContents& contents);
  // Puts an exit beyond kMaxSubreasons among the others.
  void LimitSubreasons(ExitContents& contents);

  PlacingOptions options_;
  PlacingObserver& observer_;
  CrossChecks& checks_;
  TimelineObserver* next_;              // null: nobody
  TimelineObserver* next_of_segments_;  // the same; null if it does not want them
  Timeline timeline_;
  absl::flat_hash_map<VcpuRef, const VcpuTrack*> tracks_;
  TraceCounts counts_;
  SampleRate sample_rate_;
  RunQueues run_queues_;
  RunningThreads threads_;
  ContextSwitches switches_;
  UnsampledSwitches unsampled_switches_;
  Losses losses_;
  std::array<bool, trace::kEventCount> noted_events_{};            // those of NoteRecord
  std::array<bool, trace::kEventCount> handler_events_{};          // those of NoteContents
  absl::flat_hash_set<std::pair<ExitKind, uint64_t>> subreasons_;  // that were met
  // Those of them that were met last, by PlaceOf: exits are about the same things again and again.
  static constexpr unsigned kSubreasonBits = 6;
  std::array<std::pair<ExitKind, uint64_t>, size_t{1} << kSubreasonBits> recent_subreasons_{};
  std::vector<VcpuHistory> vcpus_;   // by VcpuTrack::index
  std::vector<PcpuHistory> pcpus_;   // by pCPU
  std::vector<uint32_t> unsettled_;  // the vCPUs that have an unsettled exit: indices of vcpus_
  Tsc settled_until_;                // the begin of the first of these exits' parts
  std::optional<Tsc> trace_begin_;
  double cycles_per_transition_;
};

template <typename Visitor>
void RecentTimeline::ForEachOpen(const VcpuTrack& track, Visitor visit) const {
  std::optional<TimelineInterval> open = OpenInterval(track);
  if (!open || open->range.Empty()) return;
  if (open->context.kind == ContextKind::kLost) return visit(*open);
  ForEachPart(open->vcpu, open->pcpu, open->range,
              [&](TscRange range, uint32_t waiting, uint32_t thread) {
                open->range = range;
                open->context.waiting = waiting;
                open->context.thread = thread;
                visit(*open);
              });
}

template <typename Visitor>
void RecentTimeline::ForEachPart(VcpuRef vcpu, PcpuId pcpu, TscRange range,
                                 const Visitor& visit) const {
  const auto by_thread = [&](TscRange part, uint32_t waiting) {
    if (!threads_.known()) return visit(part, waiting, uint32_t{0});
    threads_.ForEach(vcpu, part, [&](TscRange of, uint32_t thread) { visit(of, waiting, thread); });
  };
  if (!options_.by_waiting) return by_thread(range, 0);
  run_queues_.ForEach(pcpu, range, by_thread);
}

// Whether samples in such intervals can have known instants: those of NMI exits, and others.
[[nodiscard]] constexpr bool HasInstants(ContextKind kind) {
  return kind == ContextKind::kGuest || kind == ContextKind::kRunning;
}

}  // namespace xenoscope::correlate
