#include "cli/profile_source.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/recorded_profile.h"
#include "cli/recorded_samples.h"
#include "correlate/exit_samples.h"
#include "report/profile/changes.h"
#include "trace/probe.h"

namespace xenoscope::cli {
namespace {

using recording::Recording;
using recording::RecordingInfo;

// Whether the samples are the trace's own. Errors: that there are none where they were asked for.
absl::StatusOr<bool> FromTrace(const ProfileRequest& request, const RecordingInfo& info,
                               bool traced) {
  const bool wanted =
      request.source == "trace" || (request.source == "auto" && info.sources.empty());
  if (wanted && !traced) {
    return NotFoundError("{}: recorded without samples and without a trace", request.input);
  }
  if (!wanted && info.sources.empty()) {
    return NotFoundError("{}: no samples were recorded; --source trace takes the trace's own",
                         request.input);
  }
  return wanted;
}

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "xenoscope: {}\n", warning);
}

// The part of the recording that was asked for.
void Narrow(const ProfileRequest& request, Clock clock, Tsc begin, ProfileInput& profiled) {
  // Times are those of dump, where there is a trace.
  const Tsc zero = profiled.trace == nullptr
                       ? begin
                       : trace::ProbeTrace(*profiled.trace).first_tsc.value_or(begin);
  if (request.from) profiled.within.begin = request.from->After(zero, clock);
  if (request.to) profiled.within.end = request.to->After(zero, clock);
}

}  // namespace

absl::StatusOr<ProfileSource> ProfileSource::Open(const ProfileRequest& request) {
  ProfileSource source;
  if (auto opened =
          OpenTraceInput({.input = request.input, .clock = {}, .dialect = {}, .tsc_offsets = {}});
      opened.ok()) {
    source.input_ = *std::move(opened);
  } else if (!absl::IsNotFound(opened.status()) || !Recording::IsRecording(request.input)) {
    return opened.status();
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(source.bare_, Recording::Open(request.input));
  }
  const std::optional<Recording>& recording = source.recording();
  XENOSCOPE_ASSIGN_OR_RETURN(source.from_trace_,
                             FromTrace(request, recording ? recording->info() : RecordingInfo(),
                                       source.input_.has_value()));
  XENOSCOPE_ASSIGN_OR_RETURN(source.symbols_, LoadSymbols(request.symbols, recording));
  if (source.from_trace_) return source;
  XENOSCOPE_ASSIGN_OR_RETURN(source.processes_, RecordedProcesses::Read(*recording));
  source.processes_.ExportTo(source.symbols_.resolver->processes());
  if (source.processes_.invalid() > 0) {
    Warn({fmt::format("{}: {} records of processes are damaged, or of a newer version",
                      request.input, source.processes_.invalid())});
  }
  return source;
}

absl::Status ProfileSource::Profile(const ProfileRequest& request, report::ProfileReport& out,
                                    correlate::PipelineObserver* pipeline_observer) const {
  out.traced = input_.has_value();
  if (recording()) out.clock = recording()->clock();
  if (info() != nullptr) out.changes = report::ChangeLines(*info());
  out.domain_name = [this](DomainId domain) { return DomainName(domain); };
  out.process_name = [this](AddressSpaceId space) { return processes_.NameOf(space); };
  out.function_of = [this](FunctionId id) -> const Function& { return symbols().Describe(id); };
  out.lines_of = [this](DomainId domain, Mode mode, AddressSpaceId space, Address address) {
    return LinesOf(domain, mode, space, address);
  };
  const trace::Dialect dialect =
      input_ ? CompleteDialect(input_->dialect, input_->trace) : trace::Dialect();
  ProfileInput profiled{input_ ? &input_->trace : nullptr, dialect, symbols_.resolver.get()};
  profiled.pipeline_observer = pipeline_observer;
  Narrow(request, out.clock, info() == nullptr ? Tsc() : info()->started, profiled);
  if (from_trace_) {
    XENOSCOPE_RETURN_IF_ERROR(FindShifts(dialect, 0));
    XENOSCOPE_RETURN_IF_ERROR(ProfileTrace(profiled, out));
  } else {
    SampleSelection samples;
    XENOSCOPE_ASSIGN_OR_RETURN(samples.event, ChooseEvent(*recording(), request.event, {}));
    XENOSCOPE_RETURN_IF_ERROR(FindShifts(dialect, samples.event));
    XENOSCOPE_RETURN_IF_ERROR(ProfileRecorded(profiled, *recording(), samples, processes_, out));
  }
  Warn(symbols_.resolver->Mismatches());
  return absl::OkStatus();
}

absl::Status ProfileSource::FindShifts(const trace::Dialect& dialect, uint16_t event) const {
  if (!symbols().AnyMayBeRelocated()) return absl::OkStatus();
  constexpr size_t kEnough = 4096;  // of a domain
  std::map<DomainId, std::vector<Address>> sampled;
  const auto collect = [&sampled](correlate::SampleSource& samples) {
    while (const recording::Sample* sample = samples.Next()) {
      if (sample->mode != Mode::kKernel) continue;
      std::vector<Address>& addresses = sampled[sample->vcpu.domain];
      if (addresses.size() < kEnough) addresses.push_back(sample->address);
    }
  };
  if (from_trace_) {
    correlate::ExitSamples samples(input_->trace, dialect.vendor);
    collect(samples);
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(
        RecordedSamples samples,
        RecordedSamples::Open(*recording(), {.event = event}, /*processes=*/nullptr));
    collect(samples);
  }
  for (const auto& [domain, addresses] : sampled) {
    if (auto found = symbols().FindShift(domain, addresses)) Warn({*std::move(found)});
  }
  return absl::OkStatus();
}

report::CodeLines ProfileSource::LinesOf(DomainId domain, Mode mode, AddressSpaceId space,
                                         Address address) const {
  report::CodeLines lines;
  if (mode == Mode::kXen && info() != nullptr) lines.build_id = info()->xen.build_id;
  const auto place = symbols().LocationOf(domain, mode, space, address);
  if (!place || place->file == nullptr) return lines;
  lines.path = place->file->path();
  lines.build_id = place->file->elf().BuildId();
  if (place->file->debug_info() == nullptr) return lines;
  for (const symbolizer::CodeFrame& frame : place->file->debug_info()->FramesAt(place->address)) {
    lines.inlined.push_back({std::string(frame.function), {std::string(frame.file), frame.line}});
  }
  return lines;
}

std::string ProfileSource::DomainName(DomainId domain) const {
  return info() == nullptr ? std::string() : info()->NameOf(domain);
}

}  // namespace xenoscope::cli
