#include "cli/trace_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/unread_notes.h"

namespace xenoscope::cli {
namespace {

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

void SetClock(const std::string& text, profile::TraceRequest& request) {
  const auto hz = ParseHz(text);
  if (!hz) {
    ThrowUsageError("--cpu-hz", text + " is not a frequency (write 2300000000, 2300M or 2.3G)");
  }
  request.clock = Clock{*hz, ClockSource::kGiven};
}

void SetVendor(const std::string& text, profile::TraceRequest& request) {
  request.dialect.vendor = text == "intel" ? trace::Vendor::kVmx : trace::Vendor::kSvm;
  request.dialect.vendor_source = trace::DialectSource::kGiven;
}

void SetVersion(const std::string& text, profile::TraceRequest& request) {
  const auto version = trace::ParseXenVersion(text);
  if (!version) {
    ThrowUsageError("--xen", text + " is not a version of Xen (write 4.17)");
  }
  request.dialect.SetVersion(*version, trace::DialectSource::kGiven);
}

void AddTscOffset(const std::string& text, profile::TraceRequest& request) {
  uint32_t pcpu = 0;
  int64_t cycles = 0;
  const char* end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, pcpu);
  const char* colon = number.ptr;
  if (number.ec == std::errc() && colon != end && *colon == ':') {
    const char* from = colon + 1 + (end - colon > 1 && colon[1] == '+' ? 1 : 0);
    const auto rest = std::from_chars(from, end, cycles);
    if (rest.ec == std::errc() && rest.ptr == end) {
      request.tsc_offsets[PcpuId{pcpu}] = cycles;
      return;
    }
  }
  ThrowUsageError("--tsc-offset", text + " is not PCPU:CYCLES (write 1:-2300000 for pCPU 1)");
}

}  // namespace

void AddTraceOptions(Command command, profile::TraceRequest& request) {
  request.path = kDefaultRecording;
  command.AddOption("INPUT", request.path, "Recording, or a file written by xentrace")
      .ShowDefault();
  command.AddWordOption(
      "--cpu-hz", [&request](const std::string& text) { SetClock(text, request); },
      "CPU frequency of the host (2.3G); default: recorded, or estimated from the trace");
  command
      .AddWordOption(
          "--vendor", [&request](const std::string& text) { SetVendor(text, request); },
          "CPU vendor: intel or amd; default: recorded, or inferred from the trace")
      .OneOf({"intel", "amd"});
  command.AddWordOption(
      "--xen", [&request](const std::string& text) { SetVersion(text, request); },
      "Version of Xen (4.17); default: recorded, or inferred from the trace");
  command
      .AddWordsOption(
          "--tsc-offset",
          [&request](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) AddTscOffset(text, request);
          },
          "PCPU:CYCLES to add to the clock of a pCPU; `summary` prints the value where clocks "
          "differ")
      .SplitAt(',')
      .OneWordEach();
}

absl::StatusOr<profile::TraceInput> OpenTraceInput(const profile::TraceRequest& request) {
  std::vector<std::string> warnings;
  absl::StatusOr<profile::TraceInput> input = profile::OpenTraceInput(request, warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "xenoscope: {}\n", warning);
  return input;
}

void WarnOfUnread(const trace::UnreadCounts& unread) {
  for (const std::string& note : report::UnreadNotes(unread)) {
    fmt::print(stderr, "xenoscope: {}\n", note);
  }
}

}  // namespace xenoscope::cli
