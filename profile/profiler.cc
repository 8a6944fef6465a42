#include "profile/profiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/parallel.h"
#include "correlate/em_refinement.h"
#include "correlate/placing_thread.h"
#include "correlate/timeline_pass.h"
#include "profile/code_lines.h"
#include "profile/pipeline_options.h"
#include "profile/placing_pass.h"
#include "profile/sample_choice.h"
#include "profile/samples_within.h"

namespace xenoscope::profile {
namespace {

using recording::Recording;
using recording::RecordingInfo;

// Nothing is asked for before the instants of the trace's own samples. This much is kept
// nevertheless (about 0.5 ms), as clocks of pCPUs may differ.
constexpr Cycles kKeptBefore = Cycles{1} << 20;

// Returns the time of the first record; the end of time if there is none.
Tsc FirstRecord(const trace::TraceFile& trace) {
  trace::OrderedStream stream = trace.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind == trace::ItemKind::kRecord) return item->record.tsc;
  }
  return trace::OrderedStream::kEnd;
}

// "hash.c:12", of the innermost inlined function, as perf's srcline has it.
std::string LineText(const std::vector<Frame>& frames) {
  if (frames.empty() || frames.front().call_site_or_line.line == 0) return "[no line]";
  const SourceLine& line = frames.front().call_site_or_line;
  return fmt::format("{}:{}", line.file, line.line);
}

// Describes events of one name and modes: what their samples stand for, and cautions.
void DescribeEvents(const RecordingInfo& info, std::span<const recording::EventInfo> events,
                    const EventGroup& group, SampleSet& set) {
  const recording::EventInfo& first = events[group.front()];
  const auto all = [&](auto condition) {
    return std::ranges::all_of(group, [&](uint16_t i) { return condition(events[i]); });
  };
  const bool one_period =
      all([&first](const recording::EventInfo& event) { return event.period == first.period; });
  const std::string restriction = RestrictionOf(info, first);
  set.is_time =
      all([](const recording::EventInfo& event) { return CountsTime(event) && !event.waiting; });
  set.stratified = set.is_time && restriction.empty();
  if (first.waiting) {
    set.cautions.emplace_back(
        "Samples are from vCPUs that waited for a pCPU. They show where vCPUs were preempted, not "
        "where their time went.");
  }
  if (!restriction.empty()) {
    set.cautions.push_back(
        set.is_time && set.traced
            ? restriction +
                  " The trace does not measure the time of modes, so shares are parts of these "
                  "samples, and cycles are samples times the period."
            : restriction);
  }
  if (set.is_time && !one_period && !(set.stratified && set.traced)) {
    set.is_time = set.stratified = false;
    set.cautions.emplace_back(
        "The guests' events have different periods, so there are no cycles, and shares are of the "
        "samples. Choose one guest's event with --event.");
  }
  if (info.state == recording::State::kEndedEarly) {
    set.cautions.push_back(fmt::format("The recording ended early: {}", info.stopped_because));
  }
  if (info.boost) {
    set.cautions.push_back(
        fmt::format("dom0's weight was raised from {} to {} for this recording (--boost): guests "
                    "waited longer for pCPUs that dom0 wanted too than they do without it.",
                    info.boost->before, info.boost->raised));
  }
  if (one_period) set.period = static_cast<double>(first.period);
}

// Describes the events beside the profile's own.
void Compare(const RecordingInfo& info, std::span<const recording::EventInfo> events,
             const SampleSelection& selection, SampleSet& set) {
  std::vector<EventGroup> groups = {selection.events};
  std::ranges::copy(selection.beside, std::back_inserter(groups));
  set.comparison = CompareEvents(info, events, groups);
  std::vector<std::string> texts;
  for (const ComparedEvent& event : set.comparison.events) texts.push_back(event.text);
  set.event = fmt::format("{{{}}}", fmt::join(texts, ","));
  std::ranges::copy(set.comparison.cautions, std::back_inserter(set.cautions));
}

std::vector<correlate::EventRatio> RatiosOf(const EventComparison& comparison) {
  std::vector<correlate::EventRatio> ratios;
  for (const RatioColumn& column : comparison.ratios) ratios.push_back(column.ratio);
  return ratios;
}

// Whether the choice asks for names that come while the trace is read, which it may on the thread
// alone that reads it.
bool AsksForLateNames(const correlate::RowChoice& choice) {
  return HasDimension(choice.by, correlate::Dimension::kWaiting) ||
         HasDimension(choice.by, correlate::Dimension::kThread) ||
         HasDimension(choice.by, correlate::Dimension::kContainer) ||
         HasDimension(choice.by, correlate::Dimension::kProcess);
}

// Returns the address of the STGI with which Xen on AMD ends its handling of a #VMEXIT (Xen's
// arch/x86/hvm/svm/entry.S); 0 where no symbols have it.
Address StgiOf(const Resolver& resolver) {
  const auto behind = resolver.AddressOf(kDom0, Mode::kXen, "svm_stgi_label");
  return behind ? *behind - 1 : 0;
}

using TraceObservers = std::span<correlate::TraceObserver* const>;

// Who sees the trace in which pass over it.
struct ObserverPasses {
  TraceObservers of_placer;
  std::vector<TraceObservers> apart;  // each pass on a thread of its own
};

// Sorts the observers by their passes. Those who want segments, which are most of what a timeline
// says, have one of their own. So have the others where there is a processor for one more: with
// fewer, to read the trace once more takes longer than to show the placer's pass to them.
ObserverPasses PassesOf(std::vector<correlate::TraceObserver*>& observers) {
  const auto first_of_segments = std::stable_partition(
      observers.begin(), observers.end(), [](const auto* each) { return !each->WantsSegments(); });
  const TraceObservers others(observers.begin(), first_of_segments);
  const TraceObservers of_segments(first_of_segments, observers.end());
  ObserverPasses passes;
  if (!of_segments.empty()) passes.apart.push_back(of_segments);
  if (others.empty()) return passes;
  if (ThreadLimit() > 1 + passes.apart.size()) {
    passes.apart.push_back(others);
  } else {
    passes.of_placer = others;
  }
  return passes;
}

// Whether Xen's vPMU counted the event for all domains.
bool IsByVpmuOfAll(const RecordingInfo& info, const recording::EventInfo& event) {
  return event.clocked_by == "pmu" && !event.source.starts_with("agent") &&
         std::ranges::count(info.sources, recording::kVpmuAll, &recording::SourceInfo::cpu_type) >
             0;
}

}  // namespace

absl::StatusOr<Profiler> Profiler::OfRecording(ProfileRequest request, const Recording& recording,
                                               std::span<const recording::EventInfo> events,
                                               const SampleSelection& selection,
                                               const RecordedProcesses& processes) {
  const RecordingInfo& info = recording.info();
  XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples opened,
                             RecordedSamples::Open(recording, selection, &processes));
  auto samples = std::make_unique<RecordedSamples>(std::move(opened));
  const RecordedSamples* const recorded = samples.get();
  XENOSCOPE_ASSIGN_OR_RETURN(const BracketSummary brackets,
                             SummariseBrackets(recording, selection));
  SampleSet set;
  set.event = EventText(events, selection.events);
  set.traced = request.trace != nullptr;
  set.clock = recording.clock();
  DescribeEvents(info, events, selection.events, set);
  if (!selection.beside.empty()) Compare(info, events, selection, set);
  std::vector<EventGroup> shown = selection.beside;
  shown.push_back(selection.events);
  set.other_events = OtherEvents(events, shown);
  for (const recording::StreamInfo& stream : info.streams) {
    set.lost_in_buffers += stream.logged.lost;
  }
  set.sampled = info.started < info.stopped ? TscRange{info.started, info.stopped} : brackets.all;
  set.sampled = set.sampled.Intersect(request.within);
  // Samples of vCPUs that waited are of no pCPU: the trace has no place for them.
  if (events[selection.events.front()].waiting) request.trace = nullptr;
  if (request.trace != nullptr) set.vendor = request.dialect.vendor;
  const bool by_vpmu_of_all = IsByVpmuOfAll(info, events[selection.events.front()]);
  if (by_vpmu_of_all && set.vendor == trace::Vendor::kSvm && StgiOf(*request.resolver) == 0) {
    set.cautions.emplace_back(
        "An AMD processor takes counters' interrupts of HVM guests after the VM exit, and Xen's "
        "symbols are missing, which say where: time of these guests in guest mode is shown as "
        "Xen's.");
  }
  Profiler profiler(std::move(request), std::move(set), std::move(samples));
  profiler.recorded_ = recorded;
  profiler.processes_ = &processes;
  profiler.longest_bracket_ =
      std::max(brackets.longest, by_vpmu_of_all ? correlate::kLongestVirtualInterrupt : 0);
  return profiler;
}

Profiler Profiler::OfTrace(ProfileRequest request, Clock clock) {
  SampleSet set;
  set.event = "the trace: VM exits by interrupts of the host";
  set.clock = clock;
  set.vendor = request.dialect.vendor;
  set.sampled = {FirstRecord(*request.trace), trace::OrderedStream::kEnd};
  set.sampled = set.sampled.Intersect(request.within);
  set.cautions.emplace_back(
      "Samples are the addresses at which host interrupts and NMIs interrupted HVM guests. There "
      "are none from Xen, dom0 and PV guests.");
  set.cautions.emplace_back(
      "These samples are not random. Work that is in step with timers and devices has too many or "
      "too few.");
  auto samples = std::make_unique<correlate::ExitSamples>(request.dialect.vendor);
  correlate::ExitSamples* const from_trace = samples.get();
  Profiler profiler(std::move(request), std::move(set), std::move(samples));
  profiler.from_trace_ = from_trace;
  profiler.longest_bracket_ = kKeptBefore;
  return profiler;
}

absl::StatusOr<ProfileResults> Profiler::Run() {
  const FramesAt& frames_at = request_.frames_at;
  const auto line_of = [&frames_at](const correlate::PlacedSample& placed) -> std::string {
    if (!frames_at) return LineText({});
    return LineText(
        frames_at(placed.vcpu.domain, placed.mode(), placed.sample->space, placed.address));
  };
  const auto behalf_of = [this](AddressSpaceId process) {
    return processes_ == nullptr ? std::nullopt : processes_->BehalfOf(process);
  };
  const auto space_of = [this](DomainId domain, uint32_t pid, Tsc when) {
    return processes_ == nullptr ? AddressSpaceId() : processes_->SpaceOf(domain, pid, when);
  };
  correlate::InlinedAt inlined_at;
  if (request_.columns.with_inlined) {
    inlined_at = [&frames_at](const correlate::CodeLocation& at) {
      if (!frames_at) return std::vector<std::string>();
      return InlinedFunctions(frames_at(at.domain, at.mode, at.space, at.address));
    };
  }
  const std::optional<uint32_t> nmi_exit_reason = correlate::NmiExitReason(sample_set_.vendor);
  std::vector<uint8_t> event_numbers;
  if (sample_set_.comparison.HasSeveral()) event_numbers = EventNumbers(sample_set_.comparison);
  correlate::ProfileOptions options{.by = request_.columns.by,
                                    .is_time = sample_set_.is_time,
                                    .period = sample_set_.period,
                                    .nmi_exit_reason = nmi_exit_reason,
                                    .line_of = line_of,
                                    .behalf_of = behalf_of,
                                    .space_of = space_of,
                                    .threads = request_.threads,
                                    .inlined_at = inlined_at,
                                    .fold_recursion = request_.columns.fold_recursion,
                                    .stratified = sample_set_.stratified,
                                    .event_numbers = event_numbers};
  const Profiles further = FurtherProfiles(options);
  options.parts = request_.columns.with_parts;
  options.totals = request_.columns.with_totals;
  options.subtotals = request_.columns.with_subtotals;
  options.choice = Choice();
  options.ratios = RatiosOf(sample_set_.comparison);
  options.complete = sample_set_.comparison.complete;
  correlate::Profile first(std::move(options), *request_.resolver);
  Profiles sums;
  correlate::FanOutObserver observers({&first});
  for (const std::vector<correlate::Dimension>& by : request_.columns.sums_by) {
    sums.push_back(std::make_unique<correlate::Profile>(
        correlate::ProfileOptions{.by = by,
                                  .is_time = sample_set_.is_time,
                                  .period = sample_set_.period,
                                  .nmi_exit_reason = nmi_exit_reason,
                                  .stratified = sample_set_.stratified},
        *request_.resolver));
    observers.Add(sums.back().get());
  }
  if (request_.observers.pipeline != nullptr) observers.Add(request_.observers.pipeline);
  if (request_.observers.samples != nullptr) observers.Add(request_.observers.samples);
  ProfileResults results;
  if (request_.trace == nullptr) {
    PlaceWithoutTrace(observers, further, results);
  } else {
    XENOSCOPE_RETURN_IF_ERROR(PlaceByTrace(observers, further, results));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(results.result, first.Finish());
  for (const auto& profile : further) {
    XENOSCOPE_ASSIGN_OR_RETURN(results.further.emplace_back(), profile->Finish());
  }
  for (const auto& profile : sums) results.sums.push_back(profile->TakeSums());
  if (recorded_ != nullptr) results.damaged = recorded_->Damaged();
  return results;
}

Profiler::Profiles Profiler::FurtherProfiles(const correlate::ProfileOptions& common) const {
  Profiles further;
  for (const std::vector<correlate::Dimension>& by : request_.columns.further_by) {
    correlate::ProfileOptions options = common;
    options.by = by;
    further.push_back(std::make_unique<correlate::Profile>(std::move(options), *request_.resolver));
  }
  return further;
}

correlate::RowChoice Profiler::Choice() const {
  correlate::RowChoice choice = request_.columns.choice;
  if (!HasDimension(choice.by, correlate::Dimension::kWaiting)) return choice;
  choice.is_chosen = [this](const correlate::ProfileRow& row) {
    const correlate::RowChoice& asked = request_.columns.choice;
    if (placer_ != nullptr) asked.set_waiting(placer_->waiting_sets());
    return asked.is_chosen(row);
  };
  return choice;
}

void Profiler::PlaceWithoutTrace(correlate::PlacingObserver& first, const Profiles& further,
                                 ProfileResults& results) {
  SamplesWithin samples(*samples_, request_.within);
  correlate::FanOutObserver fan_out({&first});
  for (const auto& profile : further) fan_out.Add(profile.get());
  results.counts = correlate::PlaceWithoutTrace(samples, request_.threads, fan_out);
  results.outside = samples.outside();
}

std::future<void> Profiler::ObserveMeanwhile(
    std::span<correlate::TraceObserver* const> observers) const {
  return std::async(std::launch::async, [this, observers] {
    correlate::ObserveTrace(*request_.trace, observers, request_.within.end);
  });
}

absl::Status Profiler::PlaceByTrace(correlate::PlacingObserver& first, const Profiles& further,
                                    ProfileResults& results) {
  correlate::PipelineObserver* const observer = request_.observers.pipeline;
  SamplesWithin samples(*samples_, request_.within);
  correlate::FanOutObserver fan_out({});
  std::vector<std::unique_ptr<correlate::EmRefiner>> refiners;
  const auto add = [&](correlate::PlacingObserver& profile,
                       const correlate::EmRefinementOptions& refinement) {
    // Samples of the trace itself are at known instants: there is nothing to refine.
    if (from_trace_ != nullptr) return fan_out.Add(&profile);
    refiners.push_back(
        std::make_unique<correlate::EmRefiner>(refinement, *request_.resolver, profile));
    fan_out.Add(refiners.back().get());
  };
  correlate::EmRefinementOptions refinement = RefinementOptionsFor(request_.columns.by);
  if (observer != nullptr || request_.columns.with_totals) refinement.each_sample = true;
  add(first, refinement);
  std::vector<std::vector<correlate::Dimension>> all_columns = request_.columns.further_by;
  for (size_t i = 0; i < further.size(); ++i) {
    add(*further[i], RefinementOptionsFor(all_columns[i]));
  }
  all_columns.push_back(request_.columns.by);
  // An observer that sees the trace, too, sees both on this thread.
  std::optional<correlate::PlacingThread> thread;
  if (observer == nullptr && !AsksForLateNames(request_.columns.choice)) thread.emplace(fan_out);
  correlate::PlacingObserver& next =
      thread ? static_cast<correlate::PlacingObserver&>(*thread) : fan_out;
  correlate::PlacingOptions options =
      PlacingOptionsFor(request_.dialect, sample_set_.sampled, longest_bracket_, all_columns);
  for (size_t i = 1; i < sample_set_.comparison.events.size(); ++i) {
    for (const uint16_t event : sample_set_.comparison.events[i].group) options.beside.set(event);
  }
  options.of_trace = from_trace_ != nullptr;
  options.uniform_in_time = sample_set_.stratified;
  options.threads = request_.threads;
  if (observer == nullptr && !options.by_waiting && options.threads == nullptr) {
    options.order = trace::RecordOrder::kGroups;
  }
  options.stgi = StgiOf(*request_.resolver);
  ExitCounter exits(sample_set_.sampled);
  const bool counts_exits = HasExitCounts(request_.columns.by);
  const ObserverPasses passes = PassesOf(request_.observers.trace);
  std::vector<correlate::TimelineObserver*> all{observer, counts_exits ? &exits : nullptr};
  all.insert(all.end(), passes.of_placer.begin(), passes.of_placer.end());
  correlate::TimelineFanOut timeline_observers(std::move(all));
  correlate::Placer placer(options, samples, next, timeline_observers.get());
  placer_ = &placer;
  PlacingPass pass({.placer = placer,
                    .samples = from_trace_,
                    .observer = observer,
                    .trace_observers = passes.of_placer},
                   options.order);
  // An observer of each step shows the whole trace.
  const Tsc end = observer == nullptr ? request_.within.end : trace::OrderedStream::kEnd;
  std::vector<std::future<void>> meanwhile;
  for (const TraceObservers each : passes.apart) meanwhile.push_back(ObserveMeanwhile(each));
  XENOSCOPE_RETURN_IF_ERROR(pass.Run(*request_.trace, end));
  results.unread_from = pass.unread_from();
  if (from_trace_ != nullptr) {
    // Known at the end of the only pass.
    sample_set_.sampled.end = std::min(sample_set_.sampled.end, placer.timeline().now());
  }
  for (correlate::TraceObserver* each : passes.of_placer) each->OnTraceEnd(placer.timeline());
  XENOSCOPE_RETURN_IF_ERROR(placer.Finish());
  if (thread) thread->Finish();
  for (const auto& each : refiners) each->Finish();
  for (correlate::TraceObserver* each : passes.of_placer) each->OnTimelineEnd();
  results.counts = placer.counts();
  results.counts.unread.CountBetween(request_.trace->index());
  results.exit_counts = exits.Counts();
  results.pv_entries = exits.Entries();
  results.placing_checks = placer.Checks();
  results.waiting_sets = placer.waiting_sets();
  placer_ = nullptr;
  results.outside = samples.outside();
  for (std::future<void>& each : meanwhile) each.get();  // throws what its thread has thrown
  return absl::OkStatus();
}

}  // namespace xenoscope::profile
