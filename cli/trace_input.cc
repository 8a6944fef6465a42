#include "cli/trace_input.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/error.h"

namespace xenoscope::cli {
namespace {

trace::Vendor FromRecording(recording::Vendor vendor) {
  switch (vendor) {
    case recording::Vendor::kIntel:
      return trace::Vendor::kVmx;
    case recording::Vendor::kAmd:
      return trace::Vendor::kSvm;
    case recording::Vendor::kUnknown:
      break;
  }
  return trace::Vendor::kUnknown;
}

absl::StatusOr<TraceInput> OpenRecording(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::Recording recording, recording::Recording::Open(path));
  for (const std::string& warning : recording.warnings()) {
    fmt::print(stderr, "xenoscope: {}: {}\n", path, warning);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(recording::Piece piece, recording.OpenTrace());
  XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace, trace::TraceFile::Open(piece.path()));
  const recording::RecordingInfo& info = recording.info();
  trace::Dialect dialect;
  if (const trace::Vendor vendor = FromRecording(info.host.vendor);
      vendor != trace::Vendor::kUnknown) {
    dialect.vendor = vendor;
    dialect.vendor_source = trace::DialectSource::kRecorded;
  }
  if (const auto version = trace::ParseXenVersion(info.xen.version)) {
    dialect.SetVersion(*version, trace::DialectSource::kRecorded);
  }
  const std::optional<Clock> clock =
      info.host.clock_hz > 0 ? std::optional<Clock>(recording.clock()) : std::nullopt;
  return TraceInput{std::move(recording), std::move(piece), std::move(trace), clock, dialect};
}

}  // namespace

std::string TraceInput::DomainName(DomainId domain) const {
  if (!recording) return "";
  const recording::DomainInfo* info = recording->info().Domain(domain);
  return info == nullptr ? "" : info->name;
}

absl::StatusOr<TraceInput> OpenTraceInput(const std::string& path) {
  if (recording::Recording::IsRecording(path)) return OpenRecording(path);
  XENOSCOPE_ASSIGN_OR_RETURN(trace::TraceFile trace, trace::TraceFile::Open(path));
  return TraceInput{std::nullopt, std::nullopt, std::move(trace), std::nullopt, {}};
}

absl::StatusOr<uint64_t> ParseHz(const std::string& text) {
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
  if (error != std::errc() || !(hz >= 1) || hz > 1e12) {
    return InvalidError("not a frequency: {} (write 2300000000, 2300M or 2.3G)", text);
  }
  return static_cast<uint64_t>(std::llround(hz));
}

}  // namespace xenoscope::cli
