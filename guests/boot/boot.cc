#include "guests/boot/boot.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "correlate/timeline.h"
#include "guests/phases/phase_sums.h"
#include "trace/ordered_stream.h"

namespace xenoscope::guests {
namespace {

using correlate::TimelineState;

constexpr size_t kBuild = 0;
constexpr size_t kEntry = 1;

// Cuts the time of the boot into cells.
std::vector<PhaseCell> CellsOf(const BootPhases& boot) {
  enum class Change : uint8_t { kInitcallEnd, kPhase, kCpu, kInitcallBegin };
  struct Mark {
    Tsc at;
    Change change;
    size_t value;
  };
  std::vector<Mark> marks;
  marks.reserve(boot.phases.size() + boot.cpus.size() + 2 * boot.initcalls.size());
  for (size_t i = 0; i < boot.phases.size(); ++i) {
    marks.push_back({boot.phases[i].begin, Change::kPhase, Boot::kPhasesBefore + i});
  }
  for (const BootCpu& cpu : boot.cpus) marks.push_back({cpu.at, Change::kCpu, cpu.cpu});
  for (size_t i = 0; i < boot.initcalls.size(); ++i) {
    const BootInitcall& initcall = boot.initcalls[i];
    if (!initcall.by_boot || initcall.when.Empty()) continue;
    marks.push_back({initcall.when.begin, Change::kInitcallBegin, i});
    marks.push_back({initcall.when.end, Change::kInitcallEnd, i});
  }
  std::ranges::stable_sort(marks, [](const Mark& a, const Mark& b) {
    return std::pair(a.at, a.change) < std::pair(b.at, b.change);
  });
  std::vector<PhaseCell> cells{{.begin = {}, .phase = kEntry, .vcpu = VcpuId{0}}};
  cells.reserve(marks.size() + 1);
  for (const Mark& mark : marks) {
    PhaseCell cell = cells.back();
    cell.begin = mark.at;
    if (mark.change == Change::kPhase) cell.phase = mark.value;
    if (mark.change == Change::kCpu) cell.vcpu = VcpuId{static_cast<uint32_t>(mark.value)};
    if (mark.change == Change::kInitcallBegin) cell.part = mark.value;
    if (mark.change == Change::kInitcallEnd && cell.part == mark.value) {
      cell.part = PhaseCell::kNoPart;
    }
    if (cells.back().begin == mark.at) cells.pop_back();
    cells.push_back(cell);
  }
  return cells;
}

// Sums up what the domain's vCPUs do in the cells.
class BootSums final : public PhaseSums {
 public:
  BootSums(DomainId domain, const BootPhases& boot)
      : PhaseSums(domain, CellsOf(boot), boot.end, Boot::kPhasesBefore + boot.phases.size(),
                  boot.initcalls.size()) {}

  void OnSegment(const correlate::Segment& segment) override {
    const bool is_first = segment.vcpu.domain == domain() && segment.vcpu.vcpu.value == 0;
    if (is_first && !first_run_) first_run_ = segment.range.begin;
    PhaseSums::OnSegment(segment);
  }
  void OnState(const correlate::VcpuTrack& vcpu, TimelineState /*before*/) override {
    if (vcpu.ref.domain == domain() && vcpu.ref.vcpu.value == 0 && !first_seen_) {
      first_seen_ = vcpu.first_seen;
    }
  }

  // The domain was created. Its number may have been another one's before.
  void OnCreated(Tsc at) {
    if (!first_seen_) created_ = at;
  }

  // Moves the sums into the result, whose phases have their ranges.
  absl::Status Finish(DomainId domain, Boot& boot) const {
    for (size_t i = 0; i < boot.phases.size(); ++i) {
      Phase& phase = boot.phases[i];
      phase.times = OfPhase(i, phase.when.Length());
      if (phase.times.Sum() != phase.when.Length()) {
        return InternalError("{}: the times of the boot's phase \"{}\" are {} cycles of {}",
                             ToString(domain), phase.name, phase.times.Sum(), phase.when.Length());
      }
    }
    boot.initcall_times.reserve(boot.kernel.initcalls.size());
    for (size_t i = 0; i < boot.kernel.initcalls.size(); ++i) {
      const BootInitcall& initcall = boot.kernel.initcalls[i];
      boot.initcall_times.push_back(OfPart(i, initcall.by_boot ? initcall.when.Length() : 0));
    }
    return absl::OkStatus();
  }

  // Returns when the domain first ran, at the latest at its kernel's first event.
  [[nodiscard]] Tsc FirstRun() const {
    return std::min(first_run_.value_or(FirstEvent()), FirstEvent());
  }
  // Returns when the domain began.
  [[nodiscard]] Tsc Created() const { return std::min(Begin(), FirstRun()); }

 private:
  [[nodiscard]] Tsc FirstEvent() const { return cells().size() > 1 ? cells()[1].begin : end(); }
  [[nodiscard]] Tsc Begin() const override {
    return created_.value_or(first_seen_.value_or(FirstEvent()));
  }
  [[nodiscard]] size_t PhaseOf(const PhaseCell& cell) const override {
    return cell.phase == kEntry && !first_run_ ? kBuild : cell.phase;
  }

  std::optional<Tsc> created_;
  std::optional<Tsc> first_seen_;
  std::optional<Tsc> first_run_;
};

void AddPhases(const BootSums& sums, Boot& boot) {
  const BootPhases& kernel = boot.kernel;
  const Tsc first_event = kernel.phases.front().begin;
  boot.phases.reserve(Boot::kPhasesBefore + kernel.phases.size());
  boot.phases.push_back({.name = "build", .when = {sums.Created(), sums.FirstRun()}, .times = {}});
  boot.phases.push_back({.name = "entry", .when = {sums.FirstRun(), first_event}, .times = {}});
  boot.initcalls.resize(Boot::kPhasesBefore);
  boot.begins_in_trace = !boot.phases[kBuild].when.Empty();
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    const BootPhase& phase = kernel.phases[i];
    const Tsc end = i + 1 < kernel.phases.size() ? kernel.phases[i + 1].begin : kernel.end;
    boot.phases.push_back({.name = phase.name, .when = {phase.begin, end}, .times = {}});
    boot.initcalls.push_back(phase.is_level ? std::optional<uint64_t>(0) : std::nullopt);
  }
  for (const BootInitcall& initcall : kernel.initcalls) {
    std::optional<uint64_t>& count = boot.initcalls[Boot::kPhasesBefore + initcall.phase];
    if (initcall.by_boot) count = count.value_or(0) + 1;
  }
}

}  // namespace

absl::StatusOr<Boot> FollowBoot(DomainId domain, BootPhases phases, const trace::TraceFile& xen) {
  BootSums sums(domain, phases);
  correlate::Timeline timeline(sums);
  trace::OrderedStream stream = xen.Stream();
  Boot boot;
  while (const trace::Item* const item = stream.Next()) {
    const trace::Record& record = item->record;
    if (item->kind == trace::ItemKind::kRecord && record.event == trace::Event::kDom0DomAdd &&
        record.payload.Word(0) == domain.value) {
      sums.OnCreated(record.tsc);
    }
    boot.unread.Count(*item);
    timeline.Take(*item);
    if (record.tsc > phases.end) break;
  }
  timeline.Finish();
  boot.kernel = std::move(phases);
  AddPhases(sums, boot);
  XENOSCOPE_RETURN_IF_ERROR(sums.Finish(domain, boot));
  return boot;
}

PhaseSwitches SwitchesOf(DomainId domain, const Boot& boot) {
  const std::vector<BootCpu>& cpus = boot.kernel.cpus;
  std::vector<correlate::ThreadSwitch> switches;
  switches.reserve(boot.phases.size() + 2 * cpus.size() + 1);
  const auto add = [&](uint32_t cpu, Tsc at, size_t thread) {
    switches.push_back({{domain, VcpuId{cpu}}, at, static_cast<uint32_t>(thread)});
  };
  uint32_t cpu = 0;  // where kernels begin
  size_t moved = 0;
  for (size_t i = 0; i < boot.phases.size(); ++i) {
    const TscRange when = boot.phases[i].when;
    add(cpu, when.begin, i + 1);
    for (; moved < cpus.size() && cpus[moved].at < when.end; ++moved) {
      if (cpus[moved].cpu == cpu) continue;
      const Tsc at = std::max(cpus[moved].at, when.begin);
      add(cpu, at, 0);
      cpu = cpus[moved].cpu;
      add(cpu, at, i + 1);
    }
  }
  add(cpu, boot.kernel.end, 0);
  return {boot.phases, std::move(switches)};
}

}  // namespace xenoscope::guests
