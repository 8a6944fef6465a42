// Follows what every vCPU was doing and where, from the ordered stream: runstates on pCPUs, and,
// within the running time of HVM and PVH guests, the changes between guest and hypervisor.
//
//   RUNSTATE_CHANGE               wake                 +---------+
//                      blocked  ------->  runnable --> | running |   any state --loss--> lost
//                         ^                  ^  ^      +---------+   lost --next record of it-->
//                         ... |                  |  +--preempt--+ |
//                         +--------------------block----------+
//
//   inside running, HVM and PVH:    resume --VMENTRY--> guest --VMEXIT--> exit --VMENTRY--> guest
//
// An exit during which the vCPU is descheduled has several segments, all with one exit number.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/state_snapshot.h"
#include "base/tsc.h"
#include "correlate/time_spans.h"
#include "correlate/vcpu_index.h"
#include "trace/record.h"
#include "trace/windows.h"

namespace xenoscope::correlate {

// A vCPU's runstate as the trace has it (the first four: xen/include/public/vcpu.h RUNSTATE_*).
enum class TimelineState : uint8_t { kRunning, kRunnable, kBlocked, kOffline, kLost, kUnknown };
inline constexpr int kTimelineStates = 6;

// Why a vCPU is runnable: it was woken (blocked before), preempted (running before), or neither.
enum class RunnableCause : uint8_t { kNone, kWake, kPreempt, kOther };
inline constexpr int kRunnableCauses = 4;

// kPv is found only where marks are wanted.
enum class VcpuKind : uint8_t { kUnknown, kIdle, kPv, kHvm };

enum class SegmentKind : uint8_t {
  kUndivided,  // running, with nothing known beyond that: PV, idle, or no record yet
  kGuest,      // HVM: between VMENTRY and VMEXIT
  kExit,       // HVM: between VMEXIT and VMENTRY
  kResume,     // HVM: scheduled in, on the way to VMENTRY; its exit was not seen
};

// Whether an interval really begins and ends where it seems to. Counts and percentiles are of
// kComplete intervals, as xenalyze's are; the time of the others is counted apart.
enum class Edge : uint8_t {
  kComplete,
  kBeforeFirstRun,  // the vCPU has not been seen to run yet
  kOpenAtEnd,       // the trace, or its domain, ends before the interval does
};

// One vCPU in one runstate during [begin, end). A running interval also ends where the scheduler
// decides again and chooses the same vCPU (TRC_SCHED_CONTINUE_RUNNING): it is one timeslice.
struct RunstateInterval {
  VcpuRef vcpu;
  uint32_t vcpu_index = 0;  // VcpuTrack::index
  PcpuId pcpu;              // the pCPU where it ran, or where it last ran or was woken
  TscRange range;
  TimelineState state = TimelineState::kUnknown;
  RunnableCause cause = RunnableCause::kNone;
  Edge edge = Edge::kComplete;
  uint64_t number = 0;  // the running interval's number in the trace, which its segments have too
  // The time of the first record that shows the interval: later than range.begin if that was
  // concluded.
  Tsc reported_at;
};

// A part of a running interval: [begin, end) on one pCPU.
struct Segment {
  VcpuRef vcpu;
  uint32_t vcpu_index = 0;  // VcpuTrack::index
  PcpuId pcpu;
  TscRange range;
  SegmentKind kind = SegmentKind::kUndivided;
  bool nested = false;        // kGuest, kExit: of a nested guest
  bool completed = false;     // kExit: VMENTRY followed
  bool first = false;         // kExit: the segment starts with the VMEXIT
  uint32_t reason = 0;        // kExit: the vendor's exit reason
  Address rip = 0;            // kExit: the guest's address
  uint64_t exit = 0;          // kExit: the exit's number, which is the byte of its VMEXIT
  uint64_t timeslice_id = 0;  // the number of the running interval
  Tsc timeslice_begin;        // the begin of that running interval
};

// One VM exit from the guest's point of view: from VMEXIT until VMENTRY, or until the vCPU becomes
// runnable (xenalyze's "arc": a halted vCPU's blocked time belongs to its HLT, its wait for a pCPU
// does not). At a loss of records it ends unfinished.
struct ExitArc {
  VcpuRef vcpu;
  uint32_t vcpu_index = 0;  // VcpuTrack::index
  PcpuId pcpu;
  TscRange range;
  uint32_t reason = 0;
  Address rip = 0;
  bool nested = false;
  bool finished = false;
  uint64_t exit = 0;  // the exit's number, which is the byte of its VMEXIT
};

enum class MarkKind : uint8_t { kHypercall, kSubcall, kTrap, kPageFault, kEmulation };

// Something that a PV guest's vCPU did at an instant.
struct Mark {
  VcpuRef vcpu;
  uint32_t vcpu_index = 0;  // VcpuTrack::index
  PcpuId pcpu;
  Tsc tsc;
  MarkKind kind = MarkKind::kHypercall;
  uint32_t number = 0;  // hypercall or trap number
};

struct VcpuTrack;

// A giver of records in the order trace::RecordOrder::kCrossing, in which some come late.
class LateRecords {
 public:
  virtual ~LateRecords() = default;
  // Gives the timeline the records of the pCPU that are before the time `at` on the pCPU `by`.
  virtual void CatchUp(PcpuId pcpu, PcpuId by, Tsc at) = 0;
};

// Receives completed intervals. Segments come in the order of their ends, a running interval after
// its segments.
class TimelineObserver {
 public:
  virtual ~TimelineObserver() = default;
  // Whether OnSegment, OnExit and OnMark are to be called, which are most of the calls. Asked once.
  [[nodiscard]] virtual bool WantsSegments() const { return true; }
  [[nodiscard]] virtual bool WantsExits() const { return true; }
  [[nodiscard]] virtual bool WantsMarks() const { return true; }
  virtual void OnRunstateInterval(const RunstateInterval& /*interval*/) {}
  virtual void OnSegment(const Segment& /*segment*/) {}
  virtual void OnExit(const ExitArc& /*arc*/) {}
  virtual void OnMark(const Mark& /*mark*/) {}
  // The vCPU has entered its state.
  virtual void OnState(const VcpuTrack& /*vcpu*/, TimelineState /*before*/) {}
  // The vCPU, whose entry is awaited (VcpuTrack::AwaitEntry), has entered its guest.
  virtual void OnEntry(const VcpuTrack& /*vcpu*/, Tsc /*at*/) {}
};

// What is known of one vCPU now.
struct VcpuTrack {
  VcpuRef ref;
  uint32_t index = 0;  // the vCPU's number (VcpuIndex)
  Tsc first_seen;      // the time when the trace first named it
  // The state that the first record shows, if that is a change of state.
  TimelineState first_seen_state = TimelineState::kUnknown;
  VcpuKind kind = VcpuKind::kUnknown;
  TimelineState state = TimelineState::kUnknown;
  RunnableCause cause = RunnableCause::kNone;
  Tsc since;        // the begin of the state
  Tsc reported_at;  // the first record that shows the state: later than `since` if it was concluded
  PcpuId pcpu;
  bool has_run = false;       // the vCPU has been seen to run
  uint64_t timeslice_id = 0;  // number of the running interval, while running
  // The open segment, while running.
  SegmentKind segment = SegmentKind::kUndivided;
  Tsc segment_since;
  bool guest_nested = false;  // kGuest: it runs a nested guest
  // The time in its guest, and the other running time, in segments that have ended since counting
  // began.
  Cycles in_guest = 0;
  Cycles in_nested_guest = 0;  // of in_guest
  Cycles in_hypervisor = 0;
  uint64_t exits = 0;  // VM exits since counting began
  // Asks for OnEntry at the next VMENTRY: there are many of them, and few that matter.
  void AwaitEntry() const { entry_awaited = true; }
  // The exit that is being handled, also while the vCPU is descheduled in the middle of it.
  bool exit_open = false;
  bool arc_open = false;  // the exit's arc has not ended
  bool exit_nested = false;
  bool exit_first = false;  // the open segment starts with the VMEXIT
  uint32_t exit_reason = 0;
  Address exit_rip = 0;
  Tsc exit_tsc;
  uint64_t exit = 0;  // the exit's number, which is the byte of its VMEXIT; 0: none yet
  // The rest is the timeline's own.
  bool may_be_lost = false;            // the vCPU is in may_be_lost_
  bool alive = false;                  // the vCPU is in alive_
  mutable bool entry_awaited = false;  // AwaitEntry was called
  uint16_t losses = 0;                 // losses since the vCPU was last seen
};

// Contradictions in the trace. Each is counted; none ends the work.
struct TimelineFaults {
  uint64_t runstate_mismatches = 0;      // a change from a state that the vCPU was not in
  uint64_t ran_twice = 0;                // of these: it was running on another pCPU
  uint64_t exits_without_vcpu = 0;       // VMEXIT or VMENTRY where no vCPU is known to run
  uint64_t exits_without_entry = 0;      // VMEXIT while an exit is open
  uint64_t first_mismatch_offset = 0;    // byte of the first record that contradicts
  TimeSpans mismatches;                  // the times of all these records
  uint64_t vcpus_over_limit = 0;         // records of vCPUs beyond Timeline::kMaxVcpus
  uint64_t first_over_limit_offset = 0;  // byte of the first of them

  // Adds the faults of the part of the trace that follows.
  void Append(const TimelineFaults& later) {
    if (runstate_mismatches == 0) first_mismatch_offset = later.first_mismatch_offset;
    mismatches.Add(later.mismatches);
    runstate_mismatches += later.runstate_mismatches;
    ran_twice += later.ran_twice;
    exits_without_vcpu += later.exits_without_vcpu;
    exits_without_entry += later.exits_without_entry;
    if (vcpus_over_limit == 0) first_over_limit_offset = later.first_over_limit_offset;
    vcpus_over_limit += later.vcpus_over_limit;
  }
};

// Takes the items of the stream, and calls an observer with what they mean.
class Timeline {
 public:
  // `observer` and `numbers` outlive the timeline. `numbers` is for timelines that share one
  // numbering of vCPUs; null: the timeline has its own.
  explicit Timeline(TimelineObserver& observer, VcpuIndex* numbers = nullptr);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // A function that takes the records of one event.
  using RecordHandler = void(Timeline& self, const trace::Record& record);

  // Lets records of other pCPUs catch up before a record changes a vCPU that seems to run there;
  // null: records come in the order of time. `late` outlives the calls that take records.
  void SetLateRecords(LateRecords* late) { late_ = late; }

  // The number of vCPUs that are told apart; TimelineFaults counts the records of others.
  static constexpr size_t kMaxVcpus = VcpuIndex::kMaxVcpus;
  // A vCPU that is not seen for this many losses is in one lost interval from there on.
  static constexpr uint16_t kMaxLosses = 256;

  // Takes the next item of the stream. O(1) amortised, with a factor of kMaxLosses where every
  // other record is a loss.
  void Take(const trace::Item& item) {
    if (item.kind == trace::ItemKind::kRecord) [[likely]] {
      TakeRecord(item.record);
    } else {
      TakeNonRecord(item);
    }
  }
  // Take the two kinds of items, for loops that know which one they have.
  void TakeRecord(const trace::Record& record) {
    now_ = record.tsc;
    if (RecordHandler* take = HandlerOf(record.event)) take(*this, record);
  }
  // Takes a record in the order trace::RecordOrder::kCrossing. now() does not go back, and does not
  // move on at records that change nothing here.
  void TakeCrossingOrder(const trace::Record& record) {
    if (RecordHandler* take = HandlerOf(record.event)) TakeCrossingOrder(record, *take);
  }
  // The same, where HandlerOf the record's event is known: the event was written just before, so
  // that to look for it takes longer than the call.
  void TakeCrossingOrder(const trace::Record& record, RecordHandler& take) {
    now_ = std::max(now_, record.tsc);
    take(*this, record);
  }
  void TakeNonRecord(const trace::Item& item);
  // Returns what takes records of the event; null: they change nothing here, and need not be taken.
  [[nodiscard]] RecordHandler* HandlerOf(trace::Event event) const {
    return handlers_[static_cast<size_t>(event)];
  }
  [[nodiscard]] bool Handles(trace::Event event) const { return HandlerOf(event) != nullptr; }
  // Ends everything that is open, at the time of the last item.
  void Finish();

  // Returns the vCPU that runs on the pCPU, or null.
  [[nodiscard]] VcpuTrack* Current(PcpuId pcpu) const {
    return (*currents_)[pcpu.value % trace::kMaxPcpus];
  }
  // All vCPUs met, in the order of appearance.
  const std::vector<std::unique_ptr<VcpuTrack>>& vcpus() const { return vcpus_; }
  // Returns what is known of the vCPU, or null if it was not met. O(1), by a hash.
  [[nodiscard]] const VcpuTrack* Find(VcpuRef vcpu) const {
    const auto found = by_ref_.find(vcpu);
    return found == by_ref_.end() ? nullptr : found->second;
  }
  // Whether a run of a vCPU, a VM exit or a loss is open that began before. O(vCPUs).
  [[nodiscard]] bool HasOpenBefore(Tsc at) const;
  // Lets faults and times count from here on.
  void StartCounting();
  // Saves the state that matters for later calls of an observer that wants neither marks nor
  // segments of idle vCPUs. Leaves out idle vCPUs that have been runnable since before `since`: on
  // a busy pCPU that may be long ago.
  void SaveState(StateSnapshot& out, Tsc since) const;
  // Merges those idle vCPUs with `later`, which followed the trace from `since` on, and began to
  // count where this timeline is now: informs this timeline's observer until when they were
  // runnable, or moves them to `later` if it never met them. Returns false, and does nothing, if
  // `later` would have reported more than that.
  bool MergeIdleVcpus(Timeline& later, Tsc since);
  const TimelineFaults& faults() const { return faults_; }
  [[nodiscard]] Tsc now() const { return now_; }

 private:
  // Returns what is known of the vCPU that the record names; at first that is nothing.
  VcpuTrack& Vcpu(VcpuRef ref, const trace::Record& record) {
    VcpuTrack* recent = Recent(ref);
    if (recent != nullptr && recent->ref == ref) [[likely]] {
      return *recent;
    }
    return FindOrMake(ref, record);
  }
  [[gnu::noinline]] VcpuTrack& FindOrMake(VcpuRef ref, const trace::Record& record);
  // The place of a vCPU among those that were named last. Domains have the same few vCPUs.
  VcpuTrack*& Recent(VcpuRef ref) {
    return recent_[(ref.domain.value ^ ref.vcpu.value) % recent_.size()];
  }
  void AdoptVcpu(const VcpuTrack& vcpu);
  // To be called before something on the pCPU changes the vCPU.
  void CatchUp(const VcpuTrack& vcpu, PcpuId by, Tsc at) {
    if (vcpu.state != TimelineState::kRunning || vcpu.pcpu == by) [[likely]] {
      return;
    }
    if (late_ != nullptr) late_->CatchUp(vcpu.pcpu, by, at);
  }
  // What is known of one pCPU now.
  struct PcpuTrack {
    std::optional<Tsc> begin;  // the begin of its trace, until a vCPU is seen to run there
    bool losing = false;       // its records are being lost
  };

  PcpuTrack& Pcpu(PcpuId pcpu);
  void SetCurrent(PcpuId pcpu, VcpuTrack* vcpu);
  void SetLosing(PcpuId pcpu, bool losing);
  // Counts a contradiction, and notes the first one in the order of time.
  void CountMismatch(const trace::Record& record);
  void OnRunstateChange(const trace::Record& record);
  void OnContinue(const trace::Record& record);
  void OnVmexit(const trace::Record& record);
  void OnVmentry(const trace::Record& record);
  void OnPv(const trace::Record& record, MarkKind kind, uint32_t number);
  void OnLossBegin(const trace::Item& item);
  void OnLossEnd(const trace::Item& item);
  bool Lose(VcpuTrack& vcpu, const VcpuTrack* running, Tsc at);
  void OnDomainEnd(DomainId domain, const trace::Record& record);

  void Enter(VcpuTrack& vcpu, TimelineState state, RunnableCause cause, PcpuId pcpu, Tsc at);
  void OnPcpuEnd(const trace::Item& item);
  void ReportState(VcpuTrack& vcpu, Tsc at, Edge edge);
  void CloseState(VcpuTrack& vcpu, Tsc at);
  void MarkLost(VcpuTrack& vcpu, Tsc at);
  void CloseSegment(VcpuTrack& vcpu, Tsc at, bool completed);
  void ReportSegment(VcpuTrack& vcpu, Tsc at, bool completed);
  void CloseArc(VcpuTrack& vcpu, Tsc at, bool finished);
  void OpenSegment(VcpuTrack& vcpu, SegmentKind kind, Tsc at);

  TimelineObserver* observer_;
  LateRecords* late_ = nullptr;
  VcpuIndex own_numbers_;  // used if the numbers are not shared
  VcpuIndex* numbers_;
  bool segments_;
  bool exits_;
  std::array<RecordHandler*, trace::kEventCount>
      handlers_{};  // by event; null: records of the event change nothing here
  std::vector<std::unique_ptr<VcpuTrack>> vcpus_;
  absl::flat_hash_map<VcpuRef, VcpuTrack*> by_ref_;
  std::array<VcpuTrack*, 32> recent_{};       // vCPUs that were named last, by a hash; or null
  std::unique_ptr<VcpuTrack> overflow_vcpu_;  // stands for all vCPUs beyond kMaxVcpus
  std::vector<VcpuTrack*> may_be_lost_;       // vCPUs that the next loss may concern
  absl::flat_hash_map<DomainId, std::vector<VcpuTrack*>> alive_;  // vCPUs seen since a domain's end
  std::vector<PcpuTrack> pcpus_;
  // The vCPUs that run, by pCPU. For all possible pCPUs, and apart from pcpus_, as every record
  // needs one.
  using Currents = std::array<VcpuTrack*, trace::kMaxPcpus>;
  std::unique_ptr<Currents> currents_ = std::make_unique<Currents>();
  uint32_t losing_ = 0;  // pCPUs whose records are being lost
  TimelineFaults faults_;
  // Where faults_.first_mismatch_offset is: records of different pCPUs may come in any order.
  std::pair<Tsc, PcpuId> first_mismatch_;
  std::optional<Tsc> first_loss_;  // the first loss since counting began
  Tsc counting_since_;             // the time when counting began
  Tsc now_;
  uint64_t timeslices_ = 0;
};

[[nodiscard]] const char* ToString(TimelineState state);
[[nodiscard]] const char* ToString(RunnableCause cause);
[[nodiscard]] const char* ToString(SegmentKind kind);

}  // namespace xenoscope::correlate
