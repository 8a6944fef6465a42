// The work of the scheduler: how long vCPUs waited for a pCPU, and the numbers of its events:
// wake-ups, tickles, steals, credit resets, migrations, ... of credit, credit2, rtds and null. The
// arinc653 scheduler writes no events of its own. Every event is counted for the trace; those that
// concern a vCPU are counted for the vCPU.
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/bounded_table.h"
#include "analysis/summary/registry.h"
#include "correlate/timeline.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

// The way in which a record names its vCPU.
enum class Names : uint8_t { kPacked, kTwoWords, kAfterCpu };

struct VcpuEvent {
  Event event;
  Names names = Names::kPacked;
};
constexpr std::array kVcpuEvents = {
    VcpuEvent{Event::kSchedWake, Names::kTwoWords},
    VcpuEvent{Event::kSchedBlock, Names::kTwoWords},
    VcpuEvent{Event::kSchedYield, Names::kTwoWords},
    VcpuEvent{Event::kSchedSleep, Names::kTwoWords},
    VcpuEvent{Event::kSchedShutdown, Names::kTwoWords},
    VcpuEvent{Event::kCschedAccountStart, Names::kTwoWords},
    VcpuEvent{Event::kCschedAccountStop, Names::kTwoWords},
    VcpuEvent{Event::kCschedStolenVcpu, Names::kAfterCpu},
    VcpuEvent{Event::kCschedPickedCpu, Names::kTwoWords},
    VcpuEvent{Event::kCschedBoostStart, Names::kTwoWords},
    VcpuEvent{Event::kCschedBoostEnd, Names::kTwoWords},
    VcpuEvent{Event::kCschedRatelimit},
    VcpuEvent{Event::kCsched2CreditReset},
    VcpuEvent{Event::kCsched2RunqAssign},
    VcpuEvent{Event::kCsched2Migrate},
    VcpuEvent{Event::kCsched2Ratelimit},
    VcpuEvent{Event::kRtdsBudgetReplenish},
    VcpuEvent{Event::kSnullPickedCpu},
    VcpuEvent{Event::kSnullUnitAssign},
    VcpuEvent{Event::kSnullUnitDeassign},
    VcpuEvent{Event::kSnullMigrate},
};
constexpr uint8_t kNotOfVcpus = 0xff;

// Index in kVcpuEvents of each event.
constexpr std::array<uint8_t, trace::kEventCount> MakePlaces() {
  std::array<uint8_t, trace::kEventCount> places{};
  places.fill(kNotOfVcpus);
  for (size_t i = 0; i < kVcpuEvents.size(); ++i) {
    places[static_cast<size_t>(kVcpuEvents[i].event)] = static_cast<uint8_t>(i);
  }
  return places;
}
constexpr auto kEventPlaces = MakePlaces();

VcpuRef TwoWords(const trace::Payload& payload, uint32_t word) {
  return {DomainId{static_cast<uint16_t>(payload.Word(word))}, VcpuId{payload.Word(word + 1)}};
}

VcpuRef NamedBy(const trace::Payload& payload, Names names) {
  switch (names) {
    case Names::kPacked:
      return trace::UnpackVcpu(payload.Word(0));
    case Names::kTwoWords:
      return TwoWords(payload, 0);
    case Names::kAfterCpu:
      return TwoWords(payload, 1);
  }
  return {};
}

// Returns the scheduler in the event's name: "csched2" of "csched2:tickle".
std::string_view SchedulerOf(std::string_view name) {
  const size_t colon = name.find(':');
  return colon == std::string_view::npos ? std::string_view() : name.substr(0, colon);
}

std::string_view Known(std::string_view scheduler) {
  if (scheduler == "csched") return "credit";
  if (scheduler == "csched2") return "credit2";
  if (scheduler == "snull") return "null";
  return scheduler.empty() ? "any scheduler" : scheduler;
}

constexpr GroupInfo kRunqueueWaitsGroup{"runqueue_waits", "Waits for a pCPU", SectionLevel::kTrace};
constexpr GroupInfo kSchedulerOfTraceGroup{"scheduler", "Scheduler events", SectionLevel::kTrace};
constexpr GroupInfo kSchedulerEdgesGroup{"scheduler_edges", "", SectionLevel::kTrace,
                                         GroupLayout::kRemainder, RowSubject::kVcpus};
constexpr GroupInfo kSchedulerOfVcpuGroup{"scheduler", "Scheduler events", SectionLevel::kVcpu};
constexpr GroupInfo kSwitchInfnextOfTraceGroup{"switch_infnext", "Waits as switch_infnext says",
                                               SectionLevel::kTrace, GroupLayout::kDetail};
constexpr GroupInfo kSwitchInfnextOfVcpuGroup{"switch_infnext", "Waits as switch_infnext says",
                                              SectionLevel::kVcpu, GroupLayout::kDetail};

class Scheduler final : public Mergeable<Scheduler> {
 public:
  // Without `with_records`: only what needs none of the scheduler's records, and so nothing of
  // vCPUs and of switch_infnext.
  explicit Scheduler(bool with_records) : with_records_(with_records) {}

  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.RunstateIntervals();
    if (!with_records_) return;
    subscriptions.Record(Event::kSchedSwitchInfnext);
    for (const VcpuEvent& event : kVcpuEvents) subscriptions.Record(event.event);
  }

  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    if (interval.state != correlate::TimelineState::kRunnable || IsIdle(interval.vcpu) ||
        interval.edge != correlate::Edge::kComplete) {
      return;
    }
    waits_.Add(interval.range.Length());
  }

  void OnRecord(const AttributedRecord& attributed) override {
    const trace::Record& record = attributed.record;
    const uint8_t place = kEventPlaces[static_cast<size_t>(record.event)];
    if (place != kNotOfVcpus) {
      ++VcpuAt(NamedBy(record.payload, kVcpuEvents[place].names)).counts[place];
      return;
    }
    // {domain, vcpu, ns runnable, slice}; before 4.8 without the vCPU. The idle vCPU never waits.
    const bool has_vcpu = record.payload.count() >= 4;
    const uint32_t runnable_ns = record.payload.Word(has_vcpu ? 2 : 1);
    const VcpuRef next = TwoWords(record.payload, 0);
    if (next.domain == kIdleDomain) return;
    reported_wait_.Add(runnable_ns);
    if (has_vcpu) VcpuAt(next).reported_wait.Add(runnable_ns);
  }

  void Merge(Scheduler& earlier) {
    budget_ = earlier.budget_;
    const auto merge = [](Vcpu& vcpu, const Vcpu& more) {
      AddCounts(more.counts, vcpu.counts);
      vcpu.reported_wait.Merge(more.reported_wait);
    };
    vcpus_.Prepend(earlier.vcpus_, kMaxVcpus, budget_, merge,
                   [](const TableKey& /*key*/) { return kOverLimit; });
    waits_.Merge(earlier.waits_);
    reported_wait_.Merge(earlier.reported_wait_);
  }

  bool DependsOnOrder() const override { return vcpus_.Known(kOverLimit) != nullptr; }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    if (!with_records_) return {kRunqueueWaitsGroup, kSchedulerOfTraceGroup};
    return {kRunqueueWaitsGroup,  kSwitchInfnextOfTraceGroup, kSchedulerOfTraceGroup,
            kSchedulerEdgesGroup, kSwitchInfnextOfVcpuGroup,  kSchedulerOfVcpuGroup};
  }
  void DescribeTrace(const TraceMetadata& metadata, Section& out) const override {
    MetricGroup& waits = out.AddGroup(kRunqueueWaitsGroup);
    if (waits_.count() > 0) {
      waits.rows.push_back(MetricRow{"runnable until running", {}, {}}.Add(waits_.Summary()));
    }
    if (with_records_) {
      AddReportedWait(reported_wait_, metadata, out.AddGroup(kSwitchInfnextOfTraceGroup));
    }
    MetricGroup& events = out.AddGroup(kSchedulerOfTraceGroup);
    for (size_t i = 1; i < trace::kEventCount; ++i) {
      const trace::EventInfo& info = trace::Info(static_cast<Event>(i));
      if (info.subclass != trace::TraceSubclass::kSchedClass &&
          info.subclass != trace::TraceSubclass::kSchedVerbose &&
          info.subclass != trace::TraceSubclass::kDom0DomOps) {
        continue;
      }
      const uint64_t count = metadata.volume.Records(static_cast<Event>(i));
      if (count == 0) continue;
      const std::string_view prefix = SchedulerOf(info.name);
      const std::string_view scheduler = Known(prefix);
      if (events.rows.empty() || events.rows.back().name != scheduler) {
        events.rows.push_back(MetricRow{std::string(scheduler), {}, {}});
      }
      const std::string_view name = info.name.substr(prefix.empty() ? 0 : prefix.size() + 1);
      events.rows.back().parts.push_back(
          MetricRow{std::string(name), {}, {}}.Add("count", MetricUnit::kCount, count));
    }
    if (with_records_) DescribeOverLimit(out);
  }

  // Describes vCPUs beyond kMaxVcpus, which have no table of their own.
  void DescribeOverLimit(Section& out) const {
    MetricGroup& group = out.AddGroup(kSchedulerEdgesGroup);
    const Vcpu* over_limit = vcpus_.Known(kOverLimit);
    if (over_limit == nullptr) return;
    const uint64_t events =
        std::accumulate(over_limit->counts.begin(), over_limit->counts.end(), uint64_t{0});
    group.rows.push_back(MetricRow{"events of more vCPUs than are told apart", {}, {}}.Add(
        "count", MetricUnit::kCount, events + over_limit->reported_wait.count()));
  }

  void DescribeVcpu(VcpuRef ref, const TraceMetadata& metadata, Section& out) const override {
    const Vcpu* found = vcpus_.Known(KeyOf(ref));
    if (found == nullptr) return;
    const Vcpu& vcpu = *found;
    AddReportedWait(vcpu.reported_wait, metadata, out.AddGroup(kSwitchInfnextOfVcpuGroup));
    MetricGroup& events = out.AddGroup(kSchedulerOfVcpuGroup);
    for (size_t i = 0; i < kVcpuEvents.size(); ++i) {
      if (vcpu.counts[i] == 0) continue;
      events.rows.push_back(
          MetricRow{std::string(trace::Info(kVcpuEvents[i].event).name), {}, {}}.Add(
              "count", MetricUnit::kCount, vcpu.counts[i]));
    }
  }

 private:
  struct Vcpu {
    std::array<uint64_t, kVcpuEvents.size()> counts{};
    Stat reported_wait;  // ns
  };

  static Cycles ToCycles(uint64_t ns, const Clock& clock) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<Cycles>(static_cast<Wide>(ns) * clock.hz / 1'000'000'000);
  }
  // Adds the waits that switch_infnext reports. Since 4.13 they begin when the vCPU was last taken
  // off its pCPU, and include the time that it was blocked (docs/differences-from-xenalyze.md).
  static void AddReportedWait(const Stat& reported_wait, const TraceMetadata& metadata,
                              MetricGroup& group) {
    if (reported_wait.count() == 0) return;
    StatSummary figures = reported_wait.Summary();
    for (Cycles* length : {&figures.cycles, &figures.p5, &figures.p50, &figures.p95}) {
      *length = ToCycles(*length, metadata.clock);
    }
    group.rows.push_back(MetricRow{"runnable_ns", {}, {}}.Add(figures));
  }

  // Limit of vCPUs, as damaged records may name any: those beyond are counted together.
  static constexpr uint32_t kMaxVcpus = correlate::Timeline::kMaxVcpus;
  static constexpr TableKey kOverLimit{0, 1};

  static TableKey KeyOf(VcpuRef ref) {
    return {uint64_t{ref.domain.value} << 32 | ref.vcpu.value, 0};
  }
  Vcpu& VcpuAt(VcpuRef ref) { return vcpus_.At(KeyOf(ref), kOverLimit, kMaxVcpus, budget_); }

  bool with_records_;
  EntryBudget budget_{kMaxVcpus};
  BoundedTable<Vcpu> vcpus_;
  Stat waits_;          // waits of all vCPUs, in cycles
  Stat reported_wait_;  // waits of all vCPUs, in ns
};

}  // namespace

std::unique_ptr<Analysis> MakeScheduler() {
  return std::make_unique<Scheduler>(/*with_records=*/true);
}
std::unique_ptr<Analysis> MakeSchedulerOfTrace() {
  return std::make_unique<Scheduler>(/*with_records=*/false);
}

}  // namespace xenoscope::analysis
