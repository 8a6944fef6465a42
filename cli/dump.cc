// xenoscope dump: every record of a trace, a line each.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/write_behind.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/instant.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/thread_options.h"
#include "cli/trace_options.h"
#include "correlate/clocks.h"
#include "report/dump/dump.h"
#include "report/dump/dump_exits.h"
#include "report/summary/skew_text.h"
#include "trace/probe.h"

namespace xenoscope::cli {
namespace {

// More would wait for the records that one thread at a time takes.
constexpr unsigned kDumpThreads = 4;

struct DumpCommandOptions {
  profile::TraceRequest trace;
  std::string format = "text";
  bool raw = false;
  bool exits = false;
  std::vector<std::string> events;
  std::vector<std::string> domains;
  std::vector<uint32_t> vcpus;
  std::vector<uint32_t> pcpus;
  std::optional<Instant> from;
  std::optional<Instant> to;
  unsigned threads = 0;
};

report::DumpFormat FormatOf(const std::string& name) {
  if (name == "json") return report::DumpFormat::kJson;
  return name == "csv" ? report::DumpFormat::kCsv : report::DumpFormat::kText;
}

// Throws a usage error.
report::DumpOptions Selected(const DumpCommandOptions& options) {
  report::DumpOptions dump;
  dump.format = FormatOf(options.format);
  dump.raw = options.raw;
  auto events = report::EventFilter::Parse(options.events);
  if (!events.ok()) {
    ThrowUsageError("--event", std::string(Message(events.status())));
  }
  dump.events = *events;
  for (const uint32_t vcpu : options.vcpus) dump.vcpus.push_back(VcpuId{vcpu});
  for (const uint32_t pcpu : options.pcpus) dump.pcpus.push_back(PcpuId{pcpu});
  return dump;
}

// Returns what a dump of exits has left out or cut off, a note each.
std::vector<std::string> ExitNotes(const report::ExitDumpResult& found) {
  std::vector<std::string> notes;
  if (found.unfinished > 0) {
    notes.push_back(fmt::format(
        "{} of {} exits are unfinished: a loss or the end of the trace cut them off, so their "
        "cycles are less than they took",
        found.unfinished, found.exits));
  }
  if (found.lost_records > 0) {
    notes.push_back(
        fmt::format("{} records are lost: VM exits among them have no line", found.lost_records));
  }
  if (found.without_vcpu > 0) {
    notes.push_back(
        fmt::format("{} VMEXIT and VMENTRY records have no line: the trace does not say which vCPU "
                    "ran there",
                    found.without_vcpu));
  }
  if (found.outside > 0) {
    notes.push_back(fmt::format(
        "{} records of exit handlers belong to no line: their VMEXIT is not in the trace",
        found.outside));
  }
  return notes;
}

// Writes the dump of records or exits. Returns the contradictions in the trace, and the time of its
// last record.
absl::StatusOr<report::DumpResult> Write(const trace::TraceFile& trace, bool exits,
                                         const report::DumpOptions& dump) {
  WriteBehind behind(STDOUT_FILENO);
  const report::DumpSink sink = [&](std::string_view block) {
    auto wanted = WriteStdoutBlock(block);
    behind.OnWritten();
    return wanted;
  };
  if (!exits) return report::Dump(trace, dump, sink);
  XENOSCOPE_ASSIGN_OR_RETURN(const report::ExitDumpResult found,
                             report::DumpExits(trace, dump, sink));
  for (const std::string& note : ExitNotes(found)) fmt::print(stderr, "xenoscope: {}\n", note);
  WarnOfUnread(found.unread);
  return report::DumpResult{found.contradictions, found.last};
}

// Says why no record is in the range, if the trace is before or behind it.
absl::Status CheckRange(const trace::TraceFile& trace, const report::DumpOptions& dump) {
  if (dump.to <= dump.zero) return ToSelectsNothing("trace");
  if (dump.from <= dump.zero) return absl::OkStatus();
  const Tsc last = trace::LastTsc(trace);
  if (dump.from <= last) return absl::OkStatus();
  return FromSelectsNothing("trace", dump.clock.Seconds(last - dump.zero));
}

absl::Status DumpTrace(const DumpCommandOptions& options, report::DumpOptions dump) {
  dump.threads = LimitThreads(options.threads, kDumpThreads);
  XENOSCOPE_ASSIGN_OR_RETURN(const profile::TraceInput input, OpenTraceInput(options.trace));
  XENOSCOPE_ASSIGN_OR_RETURN(dump.domains, ChooseDomains(input.info(), options.domains));
  const trace::Probe probe = trace::ProbeTrace(input.trace);
  dump.zero = probe.first_tsc.value_or(Tsc{0});
  dump.clock = input.clock.value_or(probe.ClockOr());
  dump.dialect = input.dialect.CompletedBy(probe.dialect);
  XENOSCOPE_ASSIGN_OR_RETURN(
      const TscRange range, RangeOf(options.from, options.to, {dump.zero, dump.clock, input.info()},
                                    {dump.from, dump.to}));
  dump.from = range.begin;
  dump.to = range.end;
  XENOSCOPE_RETURN_IF_ERROR(CheckRange(input.trace, dump));
  XENOSCOPE_ASSIGN_OR_RETURN(const report::DumpResult findings,
                             Write(input.trace, options.exits, dump));
  if (findings.contradictions.empty()) return absl::OkStatus();
  const auto skews =
      correlate::CompareClocks(input.trace, {dump.zero, findings.last}, findings.contradictions);
  if (!skews.empty()) {
    fmt::print(stderr, "xenoscope: {}\n", report::SkewNote(skews, dump.clock));
  }
  return absl::OkStatus();
}

}  // namespace

void AddDump(Command program, CommandAction& run) {
  auto options = std::make_shared<DumpCommandOptions>();
  Command command = program.AddSubcommand("dump", "Print all records of a trace in order of time");
  AddTraceOptions(command, options->trace);
  command
      .AddOption("--format", options->format,
                 "Output format: text, json (one object per line) or csv")
      .OneOf({"text", "json", "csv"})
      .ShowDefault();
  command.AddFlag("--raw", options->raw,
                  "Print event numbers and words in hexadecimal instead of fields");
  command
      .AddOption("-e,--event", options->events,
                 "Only these events: names, patterns (csched2:*), classes (gen sched dom0op mem pv "
                 "hvm shadow hw guest), subclasses (sched_min hvm_entryexit hvm_handler ...), "
                 "lost, damaged, unknown, malformed, wrap")
      .SplitAt(',')
      .OneWordEach();
  command
      .AddFlag("--exits", options->exits,
               "Instead of records, print a line for each VM exit: time, pCPU, vCPU, reason, "
               "subreason, guest address, cycles until the VM entry; in the order in which they "
               "ended")
      .Excludes("--raw")
      .Excludes("--event");
  command
      .AddOption("-d,--domain", options->domains,
                 "Only records of these domains: written while the domain ran, or naming it")
      .ValueName(kDomainValue)
      .SplitAt(',')
      .OneWordEach();
  command
      .AddOption("--vcpu", options->vcpus,
                 "Only records of these vCPUs: written while the vCPU ran, or naming it")
      .SplitAt(',')
      .OneWordEach();
  command.AddOption("-C,--pcpu", options->pcpus, "Only records of these pCPUs")
      .SplitAt(',')
      .OneWordEach();
  command.AddWordOption(
      "--from",
      [options](const std::string& text) { options->from = ParseInstant("--from", text); },
      std::string("Beginning: ") + kInstantHelp);
  command.AddWordOption(
      "--to", [options](const std::string& text) { options->to = ParseInstant("--to", text); },
      "End (not included), as --from");
  AddThreadsOption(command, options->threads, kDumpThreads);
  command.SetFooter(
      "Example:\n"
      "  xenoscope dump web.xeno | less\n"
      "  xenoscope dump trace.bin --domain 3 --event vmexit,vmentry --from 1.5 --to 1.6\n"
      "  xenoscope dump trace.bin --exits --domain 3 --format csv\n"
      "  xenoscope dump trace.bin --format json --event hypercall | jq .fields.op_name");
  command.SetCallback([options, &run] {
    run = [options, dump = Selected(*options)] { return DumpTrace(*options, dump); };
  });
}

}  // namespace xenoscope::cli
