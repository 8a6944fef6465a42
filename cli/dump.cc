// xenoscope dump: every record of a trace, a line each.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "report/dump.h"
#include "trace/probe.h"

namespace xenoscope::cli {
namespace {

struct Options {
  std::string input = "xenoscope.xeno";
  std::string format = "text";
  bool raw = false;
  std::vector<std::string> events;
  std::vector<uint16_t> domains;
  std::vector<uint32_t> vcpus;
  std::vector<uint32_t> pcpus;
  std::string from;
  std::string to;
  std::string cpu_hz;
  std::string vendor;
  std::string xen;
  unsigned threads = 0;
};

// "12.5": seconds after `zero`. "@123456": a TSC.
absl::StatusOr<Tsc> ParseInstant(std::string_view text, Clock clock, Tsc zero) {
  const bool is_tsc = text.starts_with('@');
  if (is_tsc) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  uint64_t tsc = 0;
  double seconds = 0;
  const auto [rest, error] =
      is_tsc ? std::from_chars(text.data(), end, tsc) : std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || rest != end || text.empty() || !(seconds >= 0 && seconds < 1e9)) {
    return InvalidError("not a time: {} (write seconds, 1.25, or a TSC, @123456789)", text);
  }
  if (is_tsc) return Tsc{tsc};
  return zero + static_cast<Cycles>(std::llround(seconds * static_cast<double>(clock.hz)));
}

report::DumpFormat FormatOf(const std::string& name) {
  if (name == "json") return report::DumpFormat::kJson;
  return name == "csv" ? report::DumpFormat::kCsv : report::DumpFormat::kText;
}

// What is given goes before what is recorded, and that before what the trace shows.
absl::Status FillIn(const Options& options, const TraceInput& input, report::DumpOptions& dump) {
  const trace::Probe probe = trace::ProbeTrace(input.trace);
  dump.zero = probe.first_tsc.value_or(Tsc{0});
  dump.clock = input.clock.value_or(probe.ClockOr());
  if (!options.cpu_hz.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t hz, ParseHz(options.cpu_hz));
    dump.clock = {hz, ClockSource::kGiven};
  }
  dump.dialect = probe.dialect;
  if (input.dialect.vendor != trace::Vendor::kUnknown) dump.dialect.vendor = input.dialect.vendor;
  if (!options.vendor.empty()) {
    dump.dialect.vendor = options.vendor == "intel" ? trace::Vendor::kVmx : trace::Vendor::kSvm;
  }
  if (input.dialect.version_source == trace::DialectSource::kRecorded) {
    dump.dialect.from_version = input.dialect.from_version;
    dump.dialect.before_version = input.dialect.before_version;
  }
  if (!options.xen.empty()) {
    const auto version = trace::ParseXenVersion(options.xen);
    if (!version) return InvalidError("not a version of Xen: {} (write 4.17)", options.xen);
    dump.dialect.SetVersion(*version, trace::DialectSource::kGiven);
  }
  if (!options.from.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(dump.from, ParseInstant(options.from, dump.clock, dump.zero));
  }
  if (!options.to.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(dump.to, ParseInstant(options.to, dump.clock, dump.zero));
  }
  return absl::OkStatus();
}

absl::Status DumpTrace(const Options& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const TraceInput input, OpenTraceInput(options.input));
  report::DumpOptions dump;
  dump.format = FormatOf(options.format);
  dump.raw = options.raw;
  XENOSCOPE_ASSIGN_OR_RETURN(dump.events, report::EventFilter::Parse(options.events));
  for (const uint16_t domain : options.domains) dump.domains.push_back(DomainId{domain});
  for (const uint32_t vcpu : options.vcpus) dump.vcpus.push_back(VcpuId{vcpu});
  for (const uint32_t pcpu : options.pcpus) dump.pcpus.push_back(PcpuId{pcpu});
  dump.threads = options.threads != 0 ? options.threads
                                      : std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
  XENOSCOPE_RETURN_IF_ERROR(FillIn(options, input, dump));
  return report::Dump(input.trace, dump, WriteStdoutPiece);
}

}  // namespace

void AddDump(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("dump", "Every record of a trace, a line each, in the order of time");
  command->add_option("INPUT", options->input, "a recording, or a file written by xentrace")
      ->capture_default_str();
  command->add_option("--format", options->format, "text, json (a JSON object a line) or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  command->add_flag("--raw", options->raw, "event numbers and words in hexadecimal, not fields");
  command
      ->add_option("-e,--event", options->events,
                   "only these: names, patterns (csched2:*), classes (gen sched dom0op mem pv hvm "
                   "shadow hw guest), parts of classes (sched_min hvm_entryexit hvm_handler ...), "
                   "lost, damaged, unknown, malformed, wrap")
      ->delimiter(',');
  command
      ->add_option("-d,--domain", options->domains,
                   "only records written while one of these domains ran, or that name it")
      ->delimiter(',');
  command->add_option("--vcpu", options->vcpus, "likewise, of these vCPUs")->delimiter(',');
  command->add_option("-C,--pcpu", options->pcpus, "only what these pCPUs wrote")->delimiter(',');
  command->add_option("--from", options->from, "first time: seconds as printed, or @TSC");
  command->add_option("--to", options->to, "the time to stop before, likewise");
  command->add_option(
      "--cpu-hz", options->cpu_hz,
      "the host's frequency (2.3G); default: recorded, or estimated from the trace");
  command
      ->add_option("--vendor", options->vendor,
                   "intel or amd; default: recorded, or inferred from the trace")
      ->check(CLI::IsMember({"intel", "amd"}));
  command->add_option("--xen", options->xen,
                      "Xen's version (4.17); default: recorded, or inferred from the trace");
  command->add_option("--threads", options->threads, "default: one a processor, at most 4");
  command->footer(
      "Example:\n"
      "  xenoscope dump web.xeno | less\n"
      "  xenoscope dump trace.bin --domain 3 --event vmexit,vmentry --from 1.5 --to 1.6\n"
      "  xenoscope dump trace.bin --format json --event hypercall | jq .fields.op_name");
  command->callback([options, &run] { run = [options] { return DumpTrace(*options); }; });
}

}  // namespace xenoscope::cli
