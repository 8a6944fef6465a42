#include "profile/trace_input.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "trace/probe.h"

namespace xenoscope::profile {
namespace {

trace::Vendor FromRecording(recording::CpuVendor vendor) {
  switch (vendor) {
    case recording::CpuVendor::kIntel:
      return trace::Vendor::kVmx;
    case recording::CpuVendor::kAmd:
      return trace::Vendor::kSvm;
    case recording::CpuVendor::kUnknown:
      break;
  }
  return trace::Vendor::kUnknown;
}

// Returns the events that Xen recorded. Recordings before format 1.10 have only the argument of
// xentrace -e.
std::optional<trace::EventMask> RecordedEventMask(const recording::RecordingInfo& info) {
  if (!info.trace) return std::nullopt;
  if (info.trace->event_mask) return trace::EventMask{*info.trace->event_mask};
  return trace::ParseEventMask(info.trace->events);
}

absl::StatusOr<TraceInput> OpenRecording(const std::string& path,
                                         std::vector<std::string>& warnings) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::Recording recording, recording::Recording::Open(path));
  for (const std::string& warning : recording.warnings()) {
    warnings.push_back(fmt::format("{}: {}", path, warning));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(recording::PlainFile plain_file, recording.OpenTrace());
  XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace,
                             trace::TraceFile::Open(plain_file.path(), plain_file.name()));
  const recording::RecordingInfo& info = recording.info();
  const trace::Dialect dialect = RecordedDialect(info);
  const std::optional<Clock> clock =
      info.host.clock_hz > 0 ? std::optional<Clock>(recording.clock()) : std::nullopt;
  const std::optional<trace::EventMask> event_mask = RecordedEventMask(info);
  return TraceInput{
      std::move(recording), std::move(plain_file), std::move(trace), clock, dialect, event_mask};
}

absl::StatusOr<TraceInput> Open(const std::string& path, std::vector<std::string>& warnings) {
  if (recording::Recording::IsRecording(path)) return OpenRecording(path, warnings);
  if (!recording::PlainFile::IsCompressed(path)) {
    XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace, trace::TraceFile::Open(path));
    return TraceInput{std::nullopt, std::nullopt, std::move(trace), std::nullopt, {}, std::nullopt};
  }
  if (path.ends_with(".tar.zst")) {
    return InvalidError("{}: an archive must be unpacked first: run `xenoscope unpack {}`", path,
                        path);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(recording::PlainFile plain_file,
                             recording::PlainFile::Decompress(path));
  XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace,
                             trace::TraceFile::Open(plain_file.path(), plain_file.name()));
  return TraceInput{std::nullopt, std::move(plain_file), std::move(trace), std::nullopt,
                    {},           std::nullopt};
}

}  // namespace

trace::Dialect RecordedDialect(const recording::RecordingInfo& info) {
  trace::Dialect dialect;
  if (const trace::Vendor vendor = FromRecording(info.host.vendor);
      vendor != trace::Vendor::kUnknown) {
    dialect.vendor = vendor;
    dialect.vendor_source = trace::DialectSource::kRecorded;
  }
  if (const auto version = trace::ParseXenVersion(info.xen.version)) {
    dialect.SetVersion(*version, trace::DialectSource::kRecorded);
  }
  return dialect;
}

trace::Dialect CompleteDialect(trace::Dialect known, const trace::TraceFile& trace) {
  if (known.vendor != trace::Vendor::kUnknown) return known;
  // About a million records.
  constexpr uint64_t kBeginning = uint64_t{20} << 20;
  const trace::Dialect inferred = trace::FindVendor(trace, kBeginning);
  known.vendor = inferred.vendor;
  known.vendor_source = inferred.vendor_source;
  return known;
}

std::string TraceInput::DomainName(DomainId domain) const {
  return recording ? recording->info().NameOf(domain) : std::string();
}

bool TraceInput::Has(trace::Figure figure) const {
  return !event_mask || trace::Has(*event_mask, figure);
}

std::string TraceInput::MissingFigures(std::span<const trace::Figure> wanted) const {
  if (!event_mask) return "";
  // The text is from outside: it is shown only where it is what was recorded.
  const std::string& asked = info()->trace->events;
  const bool is_right = trace::ParseEventMask(asked) == event_mask;
  return trace::MissingFiguresNote(
      *event_mask, is_right ? asked : fmt::format("0x{:08x}", event_mask->value), wanted);
}

absl::StatusOr<TraceInput> OpenTraceInput(const TraceRequest& request,
                                          std::vector<std::string>& warnings) {
  XENOSCOPE_ASSIGN_OR_RETURN(TraceInput input, Open(request.path, warnings));
  if (request.clock) input.clock = request.clock;
  input.dialect = request.dialect.CompletedBy(input.dialect);
  for (const auto& [pcpu, cycles] : request.tsc_offsets) {
    XENOSCOPE_RETURN_IF_ERROR(input.trace.ShiftClock(pcpu, cycles));
  }
  return input;
}

}  // namespace xenoscope::profile
