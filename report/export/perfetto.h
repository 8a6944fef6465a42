// Writes a trace and its samples as a Perfetto trace (google/perfetto, protos/perfetto/trace). It
// writes while the trace is read: memory grows with the number of different functions and stacks,
// not with the length of the trace.
//
// A domain is a process with the number kFirstPid + the domain's id. A vCPU is a thread of that
// process; its runstates, its guest and exit intervals, and its marks are tracks. Its runs are
// events of Linux's scheduler, too, so that Perfetto's own tracks of CPUs show them. Marks that a
// domain wrote (trace/guest_mark.h) are a track of its process, and what they begin and end a track
// for each text. The pCPUs together are a process too; its tracks show which vCPU ran, the requests
// to Xen and the interrupts that Xen handled. Timestamps are nanoseconds since the trace began.
//
// Samples are perf samples with their stacks. A sample that has a bracket instead of an exact time
// belongs to a separate thread, "... (drained)". Its time is the end of its bracket, where it was
// found. The brackets are a track that gives the number of samples in each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "correlate/pipeline_observer.h"
#include "correlate/stacks.h"
#include "report/export/perfetto_packets.h"
#include "report/export/perfetto_sched.h"
#include "report/profile/profile_view.h"
#include "trace/guest_mark_texts.h"

namespace xenoscope::report {

// A writer of a Perfetto trace. It observes the pipeline and gives the bytes to a sink.
class PerfettoWriter final : public correlate::PipelineObserver {
 public:
  static constexpr uint32_t kPcpusPid = 99'999;
  static constexpr uint32_t kFirstPid = 100'000;
  // the thread ids of vCPUs begin here; VcpuTrack::index is added
  static constexpr uint32_t kFirstTid = 200'000;
  // the thread ids for samples with brackets begin here
  static constexpr uint32_t kFirstDrainedTid = 300'000;

  // The report and the resolver must outlive the writer. The report must have clock, vendor and
  // names before the first item. `stacks` says what their frames are.
  PerfettoWriter(const ProfileReport& report, Resolver& resolver, correlate::StackOptions stacks,
                 PerfettoPackets::Sink sink);

  [[nodiscard]] bool Wants(trace::Event event) const override {
    return event == trace::Event::kGuest || event == trace::Event::kHwIrqHandled ||
           trace::Crosses(event);
  }
  void OnRecord(const trace::Record& record) override;
  void OnNonRecord(const trace::Item& item) override;
  void OnPlaced(const correlate::PlacedSample& placed) override;
  void OnUnplaced(const recording::Sample& /*sample*/, correlate::UnplacedReason /*why*/) override {
  }
  void OnTraced(VcpuRef /*vcpu*/, correlate::Context /*context*/,
                correlate::ContextTime /*time*/) override {}

  // Returns the sink's first error.
  absl::Status status() const override { return packets_.status(); }
  // Puts what is left of the trace, when it has ended. Other packets may follow.
  void EndTrace();
  // Writes the rest. The caller calls it once, at the end. Errors: as status().
  absl::Status Finish() { return packets_.Finish(); }

  // Takes other packets of the file, which come between EndTrace and Finish.
  PerfettoPackets& packets() { return packets_; }
  // Returns the number of switches that are left out (PerfettoSched::left_out).
  [[nodiscard]] uint64_t left_out() const { return sched_.left_out(); }
  // Returns the track of a vCPU.
  uint64_t TrackOf(VcpuRef vcpu) { return TrackNumber(Part::kThread, IndexOf(vcpu)); }

 private:
  // The kinds of tracks that a vCPU or pCPU has. The number of a track is made of the kind and the
  // index of the vCPU or pCPU.
  enum class Part : uint64_t {
    kProcess,
    kThread,
    kDrained,
    kRunstates,
    kExits,
    kMarks,
    kBrackets,
    kPcpu,
    kPcpuExits,
    kPcpuLosses,
    kRunnable,
    kGuestMarks,
    kGuestSpans,
    kPcpuInterrupts
  };
  struct Vcpu {
    VcpuRef ref;
    bool known = false;
    bool drained = false;
    TscRange bracket;  // the half-open bracket of the samples that are not written yet
    uint64_t samples = 0;
  };

  // A vCPU's run on a pCPU that has ended.
  struct Run {
    uint32_t vcpu_index = 0;
    Tsc end;
    bool preempted = false;  // the vCPU still wanted to run
  };
  // A pCPU in the words of Linux's scheduler: vCPUs are its threads.
  struct Scheduled {
    std::optional<Run> run;  // the last one
    bool idle = true;        // after the last switch
  };

  void OnRunstateInterval(const correlate::RunstateInterval& interval) override;
  void OnSegment(const correlate::Segment& segment) override;
  void OnMark(const correlate::Mark& mark) override;
  void OnState(const correlate::VcpuTrack& vcpu, correlate::TimelineState before) override;

  // Puts the switches before a run, so that Perfetto's tracks of CPUs show it.
  void PutRun(const correlate::RunstateInterval& interval);
  // Puts a sched_switch from what ran last on the pCPU to the vCPU, or to no vCPU.
  void PutSwitch(PcpuId pcpu, Tsc at, std::optional<uint32_t> to);
  // Puts an interrupt that Xen handled, if the record says so.
  void PutInterrupt(const trace::Record& record);
  void OnGuestMark(const trace::WholeGuestMark& mark);
  // Returns the track of what marks of this text begin and end; nothing if there are too many.
  std::optional<uint64_t> SpanTrack(DomainId domain, const std::string& text);
  static uint64_t TrackNumber(Part part, uint64_t of);
  uint32_t IndexOf(VcpuRef vcpu);
  void KnowVcpu(VcpuRef ref, uint32_t index);
  void KnowPcpu(PcpuId pcpu);
  void PutRunnableTrack(uint64_t track);
  void PutBracket(uint32_t index);
  uint64_t StackNumber(const correlate::PlacedSample& placed);
  uint64_t FrameNumber(const correlate::StackFrame& frame);

  const ProfileReport& report_;
  Resolver& resolver_;
  PerfettoPackets packets_;
  PerfettoSched sched_{packets_};
  Tsc now_;  // the time of the last item
  correlate::Stacks stacks_;
  absl::flat_hash_map<std::string, uint64_t> functions_;
  absl::flat_hash_map<std::string, uint64_t> mappings_;
  absl::flat_hash_map<correlate::StackFrame, uint64_t> frames_;
  absl::flat_hash_set<uint32_t> stacks_put_;
  absl::flat_hash_set<DomainId> domains_;
  absl::flat_hash_map<VcpuRef, uint32_t> index_;  // VcpuTrack::index of each vCPU
  std::vector<Vcpu> vcpus_;                       // the vCPUs, by VcpuTrack::index
  std::vector<bool> pcpus_;
  std::vector<std::optional<VcpuRef>> runners_;  // the vCPU that runs, by pCPU
  std::vector<Scheduled> scheduled_;             // by pCPU
  trace::GuestMarkTexts guest_marks_{
      [this](const trace::WholeGuestMark& mark) { OnGuestMark(mark); }};
  absl::flat_hash_set<DomainId> marking_;                       // the domains with marks
  std::map<std::pair<DomainId, std::string>, uint64_t> spans_;  // tracks by domain and text
  int64_t runnable_ = 0;
  bool counts_runnable_ = false;
  std::vector<Tsc> interrupts_end_;  // by pCPU: of the last interrupt; Tsc{}: there is none yet
};

}  // namespace xenoscope::report
