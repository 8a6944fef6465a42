#include "report/export/trace_dat_xen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "correlate/timeline.h"
#include "report/export/trace_dat.h"
#include "trace/ordered_stream.h"

namespace xenoscope::report {
namespace {

using correlate::SegmentKind;
using correlate::TimelineState;

// Events of the file, as their formats below have them.
enum Id : uint16_t { kSwitch = 1, kEntry = 2, kExit = 3 };

struct Common {
  uint16_t type = 0;
  uint8_t flags = 0;
  uint8_t preempt_count = 0;
  uint32_t pid = 0;
};
struct SwitchEvent {
  Common common{.type = kSwitch};
  std::array<char, 16> prev_comm{};
  uint32_t prev_pid = 0;
  uint32_t prev_prio = 0;
  uint64_t prev_state = 0;
  std::array<char, 16> next_comm{};
  uint32_t next_pid = 0;
  uint32_t next_prio = 0;
};
static_assert(sizeof(SwitchEvent) == 64);
struct EntryEvent {
  Common common{.type = kEntry};
  uint32_t vcpu_id = 0;
  uint32_t domain = 0;
  uint64_t rip = 0;  // not known; trace-cmd wants the field
};
static_assert(sizeof(EntryEvent) == 24);
struct ExitEvent {
  Common common{.type = kExit};
  uint32_t vcpu_id = 0;
  uint32_t domain = 0;
  uint64_t guest_rip = 0;
  uint32_t exit_reason = 0;
  uint32_t isa = 0;  // 1: VMX, 2: SVM, as Linux's
  uint32_t nested = 0;
  uint32_t padding = 0;
};
static_assert(sizeof(ExitEvent) == 40);

// exit_reason where the trace has none: of a PV guest, or records were lost.
constexpr uint32_t kNoReason = 0xffff;

constexpr std::string_view kCommonFields =
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n";
constexpr std::string_view kSwitchFields =
    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
    "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n"
    "\n"
    "print fmt: \"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d "
    "next_prio=%d\", REC->prev_comm, REC->prev_pid, REC->prev_prio, "
    "__print_symbolic(REC->prev_state, { 0, \"R\" }, { 1, \"S\" }, { 64, \"I\" }), "
    "REC->next_comm, REC->next_pid, REC->next_prio\n";
constexpr std::string_view kEntryFields =
    "\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned int domain;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long rip;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \"domain %u vcpu %u\", REC->domain, REC->vcpu_id\n";
constexpr std::string_view kExitFields =
    "\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned int domain;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int exit_reason;\toffset:24;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned int isa;\toffset:28;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned int nested;\toffset:32;\tsize:4;\tsigned:0;\n"
    "\n";

std::string Format(std::string_view name, Id id, std::string_view fields) {
  return fmt::format("name: {}\nID: {}\nformat:\n{}{}", name, static_cast<uint16_t>(id),
                     kCommonFields, fields);
}

std::string ExitFormat(trace::Vendor vendor) {
  std::string names = fmt::format("{{ {}, \"-\" }}", kNoReason);
  constexpr uint32_t kReasons = 0x500;  // beyond the last one of either vendor
  for (uint32_t reason = 0; reason < kReasons; ++reason) {
    const std::string_view name = trace::ExitReasonName(vendor, reason);
    if (!name.empty()) names += fmt::format(", {{ {}, \"{}\" }}", reason, name);
  }
  return Format("kvm_exit", kExit, kExitFields) +
         fmt::format(
             "print fmt: \"domain %u vcpu %u reason %s rip 0x%lx\", REC->domain, REC->vcpu_id, "
             "__print_symbolic(REC->exit_reason, {}), REC->guest_rip\n",
             names);
}

// Writes the events of pCPUs.
class Events final : public correlate::TimelineObserver {
 public:
  Events(TraceDat& file, trace::Vendor vendor, const std::function<std::string(DomainId)>& name_of,
         const TraceDatOptions& options)
      : file_(file), vendor_(vendor), name_of_(name_of), options_(options) {}

  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnSegment(const correlate::Segment& segment) override {
    if (IsIdle(segment.vcpu)) return;
    Pcpu& pcpu = At(segment.pcpu);
    if (segment.kind == SegmentKind::kExit && segment.first) {
      Leave(segment.pcpu, segment.range.begin, segment.reason, segment.rip, segment.nested);
    }
    if (segment.kind == SegmentKind::kExit || segment.kind == SegmentKind::kResume) return;
    // A timeslice that goes on is one stay in a PV guest.
    const bool goes_on = pcpu.in_guest == segment.vcpu && pcpu.left == segment.range.begin;
    if (!goes_on) {
      LeaveUnseen(segment.pcpu);
      EntryEvent event;
      event.common.pid = TraceDatThread(segment.vcpu);
      event.vcpu_id = segment.vcpu.vcpu.value;
      event.domain = segment.vcpu.domain.value;
      Add(segment.pcpu, segment.range.begin, event);
    }
    pcpu.in_guest = segment.vcpu;
    pcpu.left = segment.range.end;
  }
  void OnState(const correlate::VcpuTrack& vcpu, TimelineState before) override {
    if (before == TimelineState::kRunning && vcpu.state != TimelineState::kRunning) {
      stopped_[vcpu.ref] = vcpu.state;
    }
    if (vcpu.state != TimelineState::kRunning) return;
    LeaveUnseen(vcpu.pcpu);
    Pcpu& pcpu = At(vcpu.pcpu);
    const std::optional<VcpuRef> prev = std::exchange(pcpu.current, vcpu.ref);
    if (prev == vcpu.ref) return;
    SwitchEvent event;
    event.prev_comm[0] = '-';  // not known
    if (prev) {
      event.prev_pid = event.common.pid = ThreadOf(*prev);
      event.prev_comm = NameOf(*prev);
      event.prev_state = StateOf(*prev);
    }
    event.next_pid = ThreadOf(vcpu.ref);
    event.next_comm = NameOf(vcpu.ref);
    Add(vcpu.pcpu, vcpu.since, event);
  }

  void OnLost(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size() || !status_.ok()) return;
    status_ = file_.Lose(pcpu.value);
  }

  absl::Status Finish() {
    for (uint32_t pcpu = 0; pcpu < pcpus_.size(); ++pcpu) LeaveUnseen(PcpuId{pcpu});
    return status_;
  }

  // Returns the names of the vCPUs.
  [[nodiscard]] const std::map<uint32_t, std::string>& threads() const { return threads_; }

 private:
  struct Pcpu {
    std::optional<VcpuRef> current;
    std::optional<VcpuRef> in_guest;  // entered; it was left at `left`, and this is not written yet
    Tsc left;
  };

  Pcpu& At(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(size_t{pcpu.value} + 1);
    return pcpus_[pcpu.value];
  }

  // The thread 0 is what Linux calls its idle threads.
  static uint32_t ThreadOf(VcpuRef vcpu) { return IsIdle(vcpu) ? 0 : TraceDatThread(vcpu); }
  std::array<char, 16> NameOf(VcpuRef vcpu) {
    std::string name = fmt::format("swapper/{}", vcpu.vcpu.value);
    if (!IsIdle(vcpu)) {
      std::string& known = threads_[TraceDatThread(vcpu)];
      if (known.empty()) {
        const std::string domain = name_of_(vcpu.domain);
        known =
            fmt::format("{}/v{}", domain.empty() ? ToString(vcpu.domain) : domain, vcpu.vcpu.value);
        std::ranges::replace(known, '\n', ' ');
      }
      name = known;
    }
    std::array<char, 16> comm{};
    const std::string_view shown = std::string_view(name).substr(0, comm.size() - 1);
    std::ranges::copy(shown, comm.begin());
    return comm;
  }
  [[nodiscard]] uint64_t StateOf(VcpuRef vcpu) const {
    constexpr uint64_t kSleeping = 1;
    constexpr uint64_t kDead = 64;
    const auto found = stopped_.find(vcpu);
    if (found == stopped_.end()) return 0;
    if (found->second == TimelineState::kBlocked) return kSleeping;
    return found->second == TimelineState::kOffline ? kDead : 0;
  }

  void Leave(PcpuId at, Tsc when, uint32_t reason, Address rip, bool nested) {
    Pcpu& pcpu = At(at);
    if (!pcpu.in_guest) return;
    ExitEvent event;
    event.common.pid = TraceDatThread(*pcpu.in_guest);
    event.vcpu_id = pcpu.in_guest->vcpu.value;
    event.domain = pcpu.in_guest->domain.value;
    event.guest_rip = rip;
    event.exit_reason = reason;
    event.isa = vendor_ == trace::Vendor::kSvm ? 2 : 1;
    event.nested = nested ? 1 : 0;
    pcpu.in_guest.reset();
    Add(at, when, event);
  }
  // Leaves the guest where the trace has no exit.
  void LeaveUnseen(PcpuId at) { Leave(at, At(at).left, kNoReason, 0, /*nested=*/false); }

  template <typename Event>
  void Add(PcpuId pcpu, Tsc at, const Event& event) {
    if (!status_.ok()) return;
    const Cycles since = std::max(at, options_.zero) - options_.zero;
    status_ = file_.Add(pcpu.value, options_.clock.Nanoseconds(since),
                        std::as_bytes(std::span(&event, 1)));
  }

  TraceDat& file_;
  trace::Vendor vendor_;
  const std::function<std::string(DomainId)>& name_of_;
  TraceDatOptions options_;
  std::vector<Pcpu> pcpus_;
  absl::flat_hash_map<VcpuRef, TimelineState> stopped_;  // the state of those that ran before
  std::map<uint32_t, std::string> threads_;
  absl::Status status_;
};

}  // namespace

absl::Status WriteXenTraceDat(const std::string& path, const trace::TraceFile& xen,
                              trace::Vendor vendor,
                              const std::function<std::string(DomainId)>& name_of,
                              const std::map<DomainId, uint32_t>& guests,
                              const TraceDatOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(TraceDat file, TraceDat::Create());
  Events events(file, vendor, name_of, options);
  correlate::Timeline timeline(events);
  trace::OrderedStream stream = xen.Stream();
  while (const trace::Item* const item = stream.Next()) {
    timeline.Take(*item);
    if (item->kind == trace::ItemKind::kLost) events.OnLost(item->record.pcpu);
  }
  timeline.Finish();
  XENOSCOPE_RETURN_IF_ERROR(events.Finish());
  const std::string on_switch = Format("sched_switch", kSwitch, kSwitchFields);
  const std::string on_entry = Format("kvm_entry", kEntry, kEntryFields);
  const std::string on_exit = ExitFormat(vendor);
  TraceDatHead head{.id = TraceDatId(kDom0) - 1,
                    .formats = {{"sched", on_switch}, {"kvm", on_entry}, {"kvm", on_exit}},
                    .kallsyms = {},
                    .threads = events.threads(),
                    .guests = {}};
  for (const auto& [domain, vcpus] : guests) {
    TraceDatGuest& guest = head.guests.emplace_back();
    guest.name = name_of(domain);
    guest.id = TraceDatId(domain);
    for (uint32_t vcpu = 0; vcpu < vcpus; ++vcpu) {
      guest.threads.push_back(TraceDatThread({domain, VcpuId{vcpu}}));
    }
  }
  return file.Write(path, head);
}

}  // namespace xenoscope::report
