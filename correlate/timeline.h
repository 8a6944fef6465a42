// What every vCPU was doing and where, from the ordered stream: runstates on pCPUs, and inside the
// running time of HVM and PVH guests the changes between guest and hypervisor.
//
//   RUNSTATE_CHANGE               wake                 +---------+
//                      blocked  ------->  runnable --> | running |   any state --loss--> lost
//                         ^                  ^  ^      +---------+   lost --next record of it-->
//                         ... |                  |  +--preempt--+ |
//                         +--------------------block----------+
//
//   inside running, HVM and PVH:    resume --VMENTRY--> guest --VMEXIT--> exit --VMENTRY--> guest
//   ... An exit during which the vCPU is descheduled has several segments, all with one exit
//   number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/state_snapshot.h"
#include "base/tsc.h"
#include "correlate/vcpu_index.h"
#include "trace/record.h"
#include "trace/windows.h"

namespace xenoscope::correlate {

// A vCPU's runstate as the trace tells it (the first four: xen/include/public/vcpu.h RUNSTATE_*).
enum class TimelineState : uint8_t { kRunning, kRunnable, kBlocked, kOffline, kLost, kUnknown };
inline constexpr int kTimelineStates = 6;

// Why a vCPU is runnable: it was woken (blocked before), preempted (running before), or neither.
enum class RunnableCause : uint8_t { kNone, kWake, kPreempt, kOther };
inline constexpr int kRunnableCauses = 4;

// kPv is found out only where marks are wanted.
enum class VcpuKind : uint8_t { kUnknown, kIdle, kPv, kHvm };

enum class SegmentKind : uint8_t {
  kUndivided,  // running, with nothing known of the inside: PV, idle, or no record yet
  kGuest,      // HVM: between VMENTRY and VMEXIT
  kExit,       // HVM: between VMEXIT and VMENTRY
  kResume,     // HVM: scheduled in, on the way to VMENTRY; its exit was not seen
};

// Whether an interval's two ends are what they seem. Counts and percentiles are of kComplete ones,
// as xenalyze's are; the time of the others is kept apart, and no time is lost.
enum class Edge : uint8_t {
  kComplete,
  kBeforeFirstRun,  // of a vCPU that has not been seen to run yet
  kOpenAtEnd,       // the trace, or its domain, ends before the interval does
};

// One vCPU in one runstate during [begin, end). A running interval also ends where the scheduler
// decides again and chooses the same vCPU (TRC_SCHED_CONTINUE_RUNNING): it is one timeslice.
struct RunstateInterval {
  VcpuRef vcpu;
  uint32_t vcpu_index = 0;  // VcpuTrack::index
  PcpuId pcpu;              // where it ran, or where it last ran or was woken
  TscRange range;
  TimelineState state = TimelineState::kUnknown;
  RunnableCause cause = RunnableCause::kNone;
  Edge edge = Edge::kComplete;
  uint64_t number = 0;  // counts the running intervals of the trace; their segments carry it too
  // When the trace first tells of it: later than range.begin where that was concluded.
  Tsc reported_at;
};

// A part of a running interval: [begin, end) on one pCPU.
struct Segment {
  VcpuRef vcpu;
  uint32_t vcpu_index = 0;  // VcpuTrack::index
  PcpuId pcpu;
  TscRange range;
  SegmentKind kind = SegmentKind::kUndivided;
  bool nested = false;        // the exit was of a nested guest
  bool completed = false;     // kExit: VMENTRY followed
  bool first = false;         // kExit: starts with the VMEXIT
  uint32_t reason = 0;        // kExit: the vendor's exit reason
  Address rip = 0;            // kExit: the guest's address
  uint64_t exit = 0;          // kExit: which one; the byte of its VMEXIT
  uint64_t timeslice_id = 0;  // the number of the running interval
  Tsc timeslice_begin;        // when that began
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
  uint64_t exit = 0;  // which one; the byte of its VMEXIT
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

// Receives completed intervals. Segments come in the order of their ends, a running interval after
// its segments.
class TimelineObserver {
 public:
  virtual ~TimelineObserver() = default;
  // Whether OnSegment and OnMark are to be called: they are most of the calls. Asked once.
  virtual bool WantsSegments() const { return true; }
  virtual bool WantsMarks() const { return true; }
  virtual void OnRunstateInterval(const RunstateInterval& /*interval*/) {}
  virtual void OnSegment(const Segment& /*segment*/) {}
  virtual void OnExit(const ExitArc& /*arc*/) {}
  virtual void OnMark(const Mark& /*mark*/) {}
  // The vCPU has just entered its state.
  virtual void OnState(const VcpuTrack& /*vcpu*/, TimelineState /*before*/) {}
  // The vCPU, whose entry is awaited (VcpuTrack::AwaitEntry), goes on in its guest.
  virtual void OnEntry(const VcpuTrack& /*vcpu*/, Tsc /*at*/) {}
};

// What is known of one vCPU now.
struct VcpuTrack {
  VcpuRef ref;
  uint32_t index = 0;  // its number (VcpuIndex)
  Tsc first_seen;      // when the trace first named it, and the state in which that found it, if it
  TimelineState first_seen_state = TimelineState::kUnknown;  // was by a change of state
  VcpuKind kind = VcpuKind::kUnknown;
  TimelineState state = TimelineState::kUnknown;
  RunnableCause cause = RunnableCause::kNone;
  Tsc since;        // of the state
  Tsc reported_at;  // when the trace first told of it: later than `since` where that was concluded
  PcpuId pcpu;
  bool has_run = false;       // has been seen to
  uint64_t timeslice_id = 0;  // number of the running interval, while running
  // Running: the open segment.
  SegmentKind segment = SegmentKind::kUndivided;
  Tsc segment_since;
  // How long it ran in its guest, and otherwise, in the segments that have ended since the counting
  // began.
  Cycles in_guest = 0;
  Cycles in_hypervisor = 0;
  // Tells all observers of the next VMENTRY: there are many of them, and few that matter.
  void AwaitEntry() const { entry_awaited = true; }
  // The exit being handled: also while descheduled in the middle of it.
  bool exit_open = false;
  bool arc_open = false;  // ... and its arc has not ended
  bool exit_nested = false;
  bool exit_first = false;  // the open segment starts with the VMEXIT
  uint32_t exit_reason = 0;
  Address exit_rip = 0;
  Tsc exit_tsc;
  uint64_t exit = 0;  // which one: the byte of its VMEXIT; 0: none yet
  // What the timeline keeps for itself: in which of its lists the vCPU is, whether its entry is
  // awaited, and how many losses there were since it was last seen.
  bool may_be_lost = false;
  bool alive = false;
  mutable bool entry_awaited = false;
  uint16_t losses = 0;
};

// Contradictions met on the way; each is counted, none stops the work.
struct TimelineFaults {
  uint64_t runstate_mismatches = 0;      // a change from a state that the vCPU was not in
  uint64_t ran_twice = 0;                // of these: it was running on another pCPU
  uint64_t exits_without_vcpu = 0;       // VMEXIT or VMENTRY where nobody is known to run
  uint64_t exits_without_entry = 0;      // VMEXIT while an exit is open
  uint64_t first_mismatch_offset = 0;    // byte of the first record that contradicts
  uint64_t vcpus_over_limit = 0;         // records of vCPUs beyond Timeline::kMaxVcpus
  uint64_t first_over_limit_offset = 0;  // byte of the first of them

  // Adds those of the part of the trace that follows.
  void Append(const TimelineFaults& later) {
    if (runstate_mismatches == 0) first_mismatch_offset = later.first_mismatch_offset;
    runstate_mismatches += later.runstate_mismatches;
    ran_twice += later.ran_twice;
    exits_without_vcpu += later.exits_without_vcpu;
    exits_without_entry += later.exits_without_entry;
    if (vcpus_over_limit == 0) first_over_limit_offset = later.first_over_limit_offset;
    vcpus_over_limit += later.vcpus_over_limit;
  }
};

class Timeline {
 public:
  // `observer`, and `numbers` where vCPUs are numbered together with other timelines, must outlive
  // the timeline.
  explicit Timeline(TimelineObserver& observer, VcpuIndex* numbers = nullptr);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // More vCPUs than this are not told apart; TimelineFaults counts their records.
  static constexpr size_t kMaxVcpus = VcpuIndex::kMaxVcpus;
  // A vCPU that is not seen for so many losses is lost in one interval from there on.
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
  // The two kinds of items apart, for loops that know which one they have.
  void TakeRecord(const trace::Record& record) {
    now_ = record.tsc;
    if (RecordHandler* take = handlers_[static_cast<size_t>(record.event)]) take(*this, record);
  }
  void TakeNonRecord(const trace::Item& item);
  // Whether records of the event change anything here: others need not be taken.
  bool Handles(trace::Event event) const {
    return handlers_[static_cast<size_t>(event)] != nullptr;
  }
  // Ends everything that is open at the time of the last item.
  void Finish();

  // Who runs on the pCPU, or null.
  VcpuTrack* Current(PcpuId pcpu) const { return (*currents_)[pcpu.value % trace::kMaxPcpus]; }
  // All vCPUs met, in the order of appearance.
  const std::vector<std::unique_ptr<VcpuTrack>>& vcpus() const { return vcpus_; }
  // From here on faults and times count.
  void StartCounting();
  // What matters for what is told from here on to an observer that wants neither segments nor
  // marks. Not of an idle vCPU that was runnable before `since`, and still is: on a busy pCPU that
  // may be long ago.
  void SaveState(StateSnapshot& out, Tsc since) const;
  // Those idle vCPUs, when `later` followed the trace from `since` on, began to count where this
  // one is now, and has not met them before: tells its own observer until when they were runnable,
  // or hands them on where `later` never met them. False, with nothing done, when that is not all
  // that `later` would have told.
  bool MergeIdleVcpus(Timeline& later, Tsc since);
  const TimelineFaults& faults() const { return faults_; }
  Tsc now() const { return now_; }

 private:
  VcpuTrack& Vcpu(VcpuRef ref, const trace::Record& record);
  void AdoptVcpu(const VcpuTrack& vcpu);
  // Takes a record of one event.
  using RecordHandler = void(Timeline& self, const trace::Record& record);
  // What is known of one pCPU now.
  struct PcpuTrack {
    std::optional<Tsc> begin;  // of its trace, as long as nobody was seen to run there
    bool losing = false;       // its records are being lost
  };

  PcpuTrack& Pcpu(PcpuId pcpu);
  void SetCurrent(PcpuId pcpu, VcpuTrack* vcpu);
  void SetLosing(PcpuId pcpu, bool losing);
  void OnRunstateChange(const trace::Record& record);
  void OnContinue(const trace::Record& record);
  void OnVmexit(const trace::Record& record);
  void OnVmentry(const trace::Record& record);
  void OnPv(const trace::Record& record, MarkKind kind, uint32_t number);
  void OnLossBegin(const trace::Item& item);
  void OnLossEnd(const trace::Item& item);
  bool Lose(VcpuTrack& vcpu, const VcpuTrack* running, Tsc at);
  void OnDomainEnd(DomainId domain, Tsc at);

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
  VcpuIndex own_numbers_;  // where nobody shares them
  VcpuIndex* numbers_;
  bool segments_;
  std::array<RecordHandler*, trace::kEventCount>
      handlers_{};  // of events that change anything here
  std::vector<std::unique_ptr<VcpuTrack>> vcpus_;
  absl::flat_hash_map<VcpuRef, VcpuTrack*> by_ref_;
  std::unique_ptr<VcpuTrack> overflow_vcpu_;  // stands for all beyond kMaxVcpus
  std::vector<VcpuTrack*> may_be_lost_;       // those that the next loss may concern
  absl::flat_hash_map<DomainId, std::vector<VcpuTrack*>> alive_;  // seen since a domain's end
  std::vector<PcpuTrack> pcpus_;
  // By pCPU, apart from the rest and all that can be: asked for with every record.
  using Currents = std::array<VcpuTrack*, trace::kMaxPcpus>;
  std::unique_ptr<Currents> currents_ = std::make_unique<Currents>();
  uint32_t losing_ = 0;  // of these
  TimelineFaults faults_;
  std::optional<Tsc> first_loss_;  // that counts
  Tsc counting_since_;             // behind this
  Tsc now_;
  uint64_t timeslices_ = 0;
};

const char* ToString(TimelineState state);
const char* ToString(RunnableCause cause);
const char* ToString(SegmentKind kind);

}  // namespace xenoscope::correlate
