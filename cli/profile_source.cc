#include "cli/profile_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "correlate/exit_samples.h"
#include "guests/threads/thread_switches.h"
#include "profile/kernel_shifts.h"
#include "profile/pipeline_options.h"
#include "profile/recorded_samples.h"
#include "profile/sample_choice.h"
#include "report/profile/chain_notes.h"
#include "report/profile/changes.h"

namespace xenoscope::cli {
namespace {

using recording::Recording;
using recording::RecordingInfo;

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "xenoscope: {}\n", warning);
}

// Whether samples of dom0 have their process.
bool HasProcesses(const recording::RecordingInfo* info) {
  return info != nullptr && std::ranges::find(info->sources, "perf",
                                              &recording::SourceInfo::name) != info->sources.end();
}

}  // namespace

absl::StatusOr<ProfileSource> ProfileSource::Open(const ProfileOptions& options) {
  ProfileSource source;
  if (auto opened =
          OpenTraceInput({.path = options.input, .clock = {}, .dialect = {}, .tsc_offsets = {}});
      opened.ok()) {
    source.input_ = *std::move(opened);
  } else if (!absl::IsNotFound(opened.status()) || !Recording::IsRecording(options.input)) {
    return opened.status();
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(source.bare_, Recording::Open(options.input));
  }
  if (source.input_) source.probe_ = trace::ProbeTrace(source.input_->trace);
  const std::optional<Recording>& recording = source.recording();
  XENOSCOPE_ASSIGN_OR_RETURN(
      source.from_trace_,
      profile::ChooseTraceSamples(options.source, recording ? recording->info() : RecordingInfo(),
                                  source.input_.has_value(), options.input));
  XENOSCOPE_ASSIGN_OR_RETURN(source.symbols_, LoadSymbols(options.symbols, recording));
  if (options.name_places) source.symbols_.resolver->processes().NamePlaces();
  if (source.from_trace_) return source;
  XENOSCOPE_ASSIGN_OR_RETURN(source.processes_, profile::RecordedProcesses::Read(*recording));
  source.processes_.ExportTo(source.symbols_.resolver->processes());
  if (source.processes_.invalid() > 0) {
    Warn(
        {fmt::format("{}: {} records of processes are left out: they are damaged, or from a newer "
                     "version of xenoscope",
                     options.input, source.processes_.invalid())});
  }
  if (options.call_chains) XENOSCOPE_RETURN_IF_ERROR(source.Unwind());
  return source;
}

absl::Status ProfileSource::Unwind() {
  Recording& recording = input_ ? *input_->recording : *bare_;
  const bool has_stacks = std::ranges::any_of(
      recording.info().sources,
      [](const recording::SourceInfo& source) { return source.stacks.has_value(); });
  if (!has_stacks) return absl::OkStatus();
  XENOSCOPE_RETURN_IF_ERROR(FindShifts({}));
  found_shifts_ = true;
  XENOSCOPE_ASSIGN_OR_RETURN(unwound_,
                             profile::UnwindStacks(recording, processes_, *symbols_.resolver));
  return absl::OkStatus();
}

absl::Status ProfileSource::FindShifts(const profile::SampleSelection& selection) const {
  if (found_shifts_ || !symbols().AnyMayBeRelocated()) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(
      profile::RecordedSamples samples,
      profile::RecordedSamples::Open(*recording(), selection, /*processes=*/nullptr));
  // Xen gives many samples of a passive domain the address of an earlier one; the interrupts of a
  // trace have their own.
  std::optional<correlate::ExitSampleReader> of_trace;
  if (input_) of_trace.emplace(input_->trace, TraceDialect().vendor);
  Warn(profile::FindKernelShifts(symbols(), samples, of_trace ? &*of_trace : nullptr));
  return absl::OkStatus();
}

absl::Status ProfileSource::Profile(const ProfileOptions& options, profile::ProfileColumns columns,
                                    report::ProfileReport& out,
                                    correlate::PlacingObservers observers,
                                    correlate::ThreadSource* threads) const {
  SetNames(out);
  out.input = options.input;
  out.by = columns.by;
  KernelTraces kernels;
  std::optional<guests::ThreadSwitches> recorded_threads;
  if (threads == nullptr) {
    XENOSCOPE_ASSIGN_OR_RETURN(kernels, KernelsFor(columns));
    if (!kernels.traces.empty()) threads = &recorded_threads.emplace(ThreadsOf(kernels));
  }
  // A trace without runstates does not say which vCPU ran: it places no sample.
  const bool places = input_ && (from_trace_ || input_->Has(trace::Figure::kRunstates));
  XENOSCOPE_ASSIGN_OR_RETURN(const TscRange within, Selected(options));
  profile::ProfileRequest request{
      .trace = places ? &input_->trace : nullptr,
      .dialect = TraceDialect(),
      .resolver = symbols_.resolver.get(),
      .frames_at = [this](
                       DomainId domain, Mode mode, AddressSpaceId space,
                       Address address) { return LinesOf(domain, mode, space, address).inlined; },
      .threads = threads,
      .observers = std::move(observers),
      .within = within,
      .columns = std::move(columns)};
  XENOSCOPE_ASSIGN_OR_RETURN(profile::Profiler profiler, MakeProfiler(options, std::move(request)));
  static_cast<profile::SampleSet&>(out) = profiler.sample_set();
  if (options.event.empty() && !out.other_events.empty()) {
    out.cautions.push_back(
        fmt::format("The recording has other events, too: {}. Choose one with --event.",
                    fmt::join(out.other_events, ", ")));
  }
  if (!from_trace_ && profile::HasDimension(out.by, correlate::Dimension::kStack)) {
    std::ranges::move(report::ChainNotes(*info()), std::back_inserter(out.cautions));
  }
  if (!from_trace_) {
    std::ranges::move(report::UnwindNotes(*info(), unwound_), std::back_inserter(out.cautions));
  }
  if (threads == nullptr && NeedsThreads(out.by)) {
    out.cautions.emplace_back(
        "There are no kernel's events in it, so threads and containers are not known: record with "
        "--threads.");
  }
  if (threads == nullptr && !HasProcesses(info()) &&
      profile::HasDimension(out.by, correlate::Dimension::kBehalf)) {
    out.cautions.emplace_back(
        "Samples here have no process, so it is not known on whose behalf dom0 worked: record with "
        "--threads, or with --source perf.");
  }
  if (input_) {
    std::string missing = input_->MissingFigures(trace::ReportFigures());
    if (!missing.empty()) out.cautions.push_back(std::move(missing));
  }
  XENOSCOPE_RETURN_IF_ERROR(CheckSampled(within, out.sampled));
  XENOSCOPE_ASSIGN_OR_RETURN(static_cast<profile::ProfileResults&>(out), profiler.Run());
  out.sampled = profiler.sample_set().sampled;
  XENOSCOPE_RETURN_IF_ERROR(CheckSampled(within, out.sampled));  // where a trace ends is known now
  Warn(symbols_.resolver->Mismatches());
  return absl::OkStatus();
}

absl::StatusOr<KernelTraces> ProfileSource::KernelsFor(
    const profile::ProfileColumns& columns) const {
  const bool needed = NeedsThreads(columns.by) ||
                      profile::HasDimension(columns.by, correlate::Dimension::kProcess) ||
                      profile::HasDimension(columns.by, correlate::Dimension::kBehalf);
  if (!recording() || !needed) return KernelTraces();
  return OpenKernelTraces(*recording(), input_ ? &input_->trace : nullptr);
}

void ProfileSource::SetNames(report::ProfileReport& out) const {
  if (info() != nullptr) {
    out.host = info()->host.name;
    out.changes = report::ChangeLines(*info());
    if (const auto& wall = info()->wall_clock) {
      out.wall_clock = report::TimeOfDay{info()->started, wall->utc_ns, wall->error_ns};
    }
  }
  out.domain_name = [this](DomainId domain) { return DomainName(domain); };
  out.process_name = [this](AddressSpaceId space) {
    return processes_.NameOf(space, &symbols_.resolver->processes());
  };
  out.function_of = [this](FunctionId id) -> const Function& { return symbols().Describe(id); };
  out.lines_of = [this](DomainId domain, Mode mode, AddressSpaceId space, Address address) {
    return LinesOf(domain, mode, space, address);
  };
}

Clock ProfileSource::HostClock() const {
  return recording() ? recording()->clock() : probe_.ClockOr();
}

trace::Dialect ProfileSource::TraceDialect() const {
  if (!input_) return {};
  trace::Dialect dialect = input_->dialect;
  if (dialect.vendor == trace::Vendor::kUnknown) {
    dialect.vendor = probe_.dialect.vendor;
    dialect.vendor_source = probe_.dialect.vendor_source;
  }
  // Guests may have run only where the probe does not look.
  return profile::CompleteDialect(dialect, input_->trace);
}

Tsc ProfileSource::Origin() const {
  const Tsc begin = info() == nullptr ? Tsc() : info()->started;
  return probe_.first_tsc.value_or(begin);
}

absl::StatusOr<TscRange> ProfileSource::Selected(const ProfileOptions& options) const {
  return RangeOf(options.from, options.to, {Origin(), HostClock(), info()},
                 profile::ProfileRequest().within);
}

absl::Status ProfileSource::CheckSampled(TscRange within, TscRange sampled) const {
  const bool all_is_asked_for = within == profile::ProfileRequest().within;
  if (all_is_asked_for || !sampled.Empty()) return absl::OkStatus();
  const std::string_view what = from_trace_ ? "trace" : "recording";
  if (sampled.end == within.end) return ToSelectsNothing(what);
  return FromSelectsNothing(what, HostClock().Seconds(sampled.end - Origin()));
}

absl::StatusOr<profile::Profiler> ProfileSource::MakeProfiler(
    const ProfileOptions& options, profile::ProfileRequest request) const {
  if (from_trace_) {
    if (symbols().AnyMayBeRelocated()) {
      correlate::ExitSampleReader samples(input_->trace, request.dialect.vendor);
      Warn(profile::FindKernelShifts(symbols(), samples));
    }
    return profile::Profiler::OfTrace(std::move(request), HostClock());
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<recording::EventInfo> events,
                             profile::ReadEvents(*recording()));
  XENOSCOPE_ASSIGN_OR_RETURN(const profile::SampleSelection selection, Select(options, events));
  XENOSCOPE_RETURN_IF_ERROR(FindShifts(selection));
  return profile::Profiler::OfRecording(std::move(request), *recording(), events, selection,
                                        processes_);
}

absl::StatusOr<profile::SampleSelection> ProfileSource::Select(
    const ProfileOptions& options, std::span<const recording::EventInfo> events) const {
  std::vector<profile::EventGroup> groups;
  if (options.event.starts_with('{')) {
    if (!options.side_by_side) {
      return InvalidError(
          "event '{}': only `report` in text, csv and json shows several events; "
          "name one event",
          options.event);
    }
    XENOSCOPE_ASSIGN_OR_RETURN(groups, profile::FindEventGroups(events, options.event));
  } else {
    groups.resize(1);
    XENOSCOPE_ASSIGN_OR_RETURN(groups[0],
                               profile::ChooseEvents(*recording(), events, options.event, {}));
    if (options.side_by_side && options.event.empty()) {
      groups = profile::GroupsComparableWith(*info(), events, groups[0]);
    }
  }
  profile::SampleSelection selection;
  selection.events = groups.front();
  selection.beside.assign(groups.begin() + 1, groups.end());
  return selection;
}

profile::CodeLines ProfileSource::LinesOf(DomainId domain, Mode mode, AddressSpaceId space,
                                          Address address) const {
  return profile::FindCodeLines(symbols(), info(), domain, mode, space, address);
}

std::string ProfileSource::DomainName(DomainId domain) const {
  return info() == nullptr ? std::string() : info()->NameOf(domain);
}

}  // namespace xenoscope::cli
