#include "cli/trace_input.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/error.h"

namespace xenoscope::cli {
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

absl::StatusOr<TraceInput> OpenRecording(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::Recording recording, recording::Recording::Open(path));
  for (const std::string& warning : recording.warnings()) {
    fmt::print(stderr, "xenoscope: {}: {}\n", path, warning);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(recording::PlainFile plain_file, recording.OpenTrace());
  XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace,
                             trace::TraceFile::Open(plain_file.path(), plain_file.name()));
  const recording::RecordingInfo& info = recording.info();
  const trace::Dialect dialect = RecordedDialect(info);
  const std::optional<Clock> clock =
      info.host.clock_hz > 0 ? std::optional<Clock>(recording.clock()) : std::nullopt;
  return TraceInput{std::move(recording), std::move(plain_file), std::move(trace), clock, dialect};
}

// "2.3g", "2300m", "2300000000" in Hz; nothing for anything else.
std::optional<uint64_t> ParseHz(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  std::string_view suffix(rest, static_cast<size_t>(end - rest));
  if (suffix.ends_with("Hz") || suffix.ends_with("hz")) suffix.remove_suffix(2);
  double scale = 0;
  if (suffix.empty()) scale = 1;
  if (suffix == "k" || suffix == "K") scale = 1e3;
  if (suffix == "m" || suffix == "M") scale = 1e6;
  if (suffix == "g" || suffix == "G") scale = 1e9;
  const double hz = number * scale;
  if (error != std::errc() || !(hz >= 1) || hz > 1e12) return std::nullopt;
  return static_cast<uint64_t>(std::llround(hz));
}

void SetClock(const std::string& text, TraceOptions& options) {
  const auto hz = ParseHz(text);
  if (!hz) {
    ThrowUsageError("--cpu-hz", text + " is not a frequency (write 2300000000, 2300M or 2.3G)");
  }
  options.clock = Clock{*hz, ClockSource::kGiven};
}

void SetVendor(const std::string& text, TraceOptions& options) {
  options.dialect.vendor = text == "intel" ? trace::Vendor::kVmx : trace::Vendor::kSvm;
  options.dialect.vendor_source = trace::DialectSource::kGiven;
}

void SetVersion(const std::string& text, TraceOptions& options) {
  const auto version = trace::ParseXenVersion(text);
  if (!version) {
    ThrowUsageError("--xen", text + " is not a version of Xen (write 4.17)");
  }
  options.dialect.SetVersion(*version, trace::DialectSource::kGiven);
}

void AddTscOffset(const std::string& text, TraceOptions& options) {
  uint32_t pcpu = 0;
  int64_t cycles = 0;
  const char* end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, pcpu);
  const char* colon = number.ptr;
  if (number.ec == std::errc() && colon != end && *colon == ':') {
    const char* from = colon + 1 + (end - colon > 1 && colon[1] == '+' ? 1 : 0);
    const auto rest = std::from_chars(from, end, cycles);
    if (rest.ec == std::errc() && rest.ptr == end) {
      options.tsc_offsets[PcpuId{pcpu}] = cycles;
      return;
    }
  }
  ThrowUsageError("--tsc-offset", text + " is not PCPU:CYCLES (write 1:-2300000 for pCPU 1)");
}

absl::StatusOr<TraceInput> OpenBareTrace(const std::string& path) {
  if (recording::Recording::IsRecording(path)) return OpenRecording(path);
  if (!recording::PlainFile::IsCompressed(path)) {
    XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace, trace::TraceFile::Open(path));
    return TraceInput{std::nullopt, std::nullopt, std::move(trace), std::nullopt, {}};
  }
  if (path.ends_with(".tar.zst")) {
    return InvalidError("{}: an archive of a recording is read after `xenoscope unpack {}`", path,
                        path);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(recording::PlainFile plain_file,
                             recording::PlainFile::Decompress(path));
  XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace,
                             trace::TraceFile::Open(plain_file.path(), plain_file.name()));
  return TraceInput{std::nullopt, std::move(plain_file), std::move(trace), std::nullopt, {}};
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

std::string TraceInput::DomainName(DomainId domain) const {
  return recording ? recording->info().NameOf(domain) : std::string();
}

void AddTraceOptions(Command command, TraceOptions& options) {
  command.AddOption("INPUT", options.input, "a recording, or a file written by xentrace")
      .ShowDefault();
  command.AddWordOption(
      "--cpu-hz", [&options](const std::string& text) { SetClock(text, options); },
      "the host's frequency (2.3G); default: recorded, or estimated from the trace");
  command
      .AddWordOption(
          "--vendor", [&options](const std::string& text) { SetVendor(text, options); },
          "intel or amd; default: recorded, or inferred from the trace")
      .OneOf({"intel", "amd"});
  command.AddWordOption(
      "--xen", [&options](const std::string& text) { SetVersion(text, options); },
      "Xen's version (4.17); default: recorded, or inferred from the trace");
  command
      .AddWordsOption(
          "--tsc-offset",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) AddTscOffset(text, options);
          },
          "PCPU:CYCLES, to be added to that pCPU's clock, as summary advises where clocks differ")
      .SplitAt(',')
      .OneWordEach();
}

absl::StatusOr<TraceInput> OpenTraceInput(const TraceOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(TraceInput input, OpenBareTrace(options.input));
  if (options.clock) input.clock = options.clock;
  input.dialect = options.dialect.CompletedBy(input.dialect);
  for (const auto& [pcpu, cycles] : options.tsc_offsets) {
    XENOSCOPE_RETURN_IF_ERROR(input.trace.ShiftClock(pcpu, cycles));
  }
  return input;
}

}  // namespace xenoscope::cli
