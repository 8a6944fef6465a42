// `xenoscope boot`: where the time of a guest's boot went, by the levels of its kernel's initcalls.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/boot_trace.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/kernel_traces.h"
#include "cli/output.h"
#include "cli/profile_source.h"
#include "cli/trace_options.h"
#include "guests/boot/boot.h"
#include "guests/boot/boot_switches.h"
#include "profile/trace_input.h"
#include "report/boot/boot_view.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

struct BootCommandOptions {
  profile::TraceRequest trace;
  std::string domain;
  std::string until;
  std::string by = "phase";
  ProfileOptions profile;
  std::string format = "text";
  size_t limit = 10;
  bool kernel_options = false;
};

// Says on stderr what of the boot is missing.
void WarnOf(const guests::Boot& boot, const guests::KernelClock& clock, const std::string& name) {
  const guests::BootPhases& kernel = boot.kernel;
  if (!boot.begins_in_trace) {
    fmt::print(stderr, "xenoscope: {} ran when the trace began: what it did before is not known\n",
               name);
  }
  if (kernel.lost_begin || kernel.losses > 0) {
    fmt::print(stderr,
               "xenoscope: {}: events of its kernel were lost{}: boot it with a larger "
               "trace_buf_size\n",
               name, kernel.lost_begin ? ", those before the first phase" : "");
  }
  WarnOfDamage(name, kernel.faults);
  WarnOfClock(name, clock);
}

// Returns the functions of each phase, by samples.
absl::StatusOr<report::Table> Functions(const guests::Boot& boot, DomainId domain,
                                        const BootCommandOptions& options,
                                        const report::BootOptions& shown) {
  using correlate::Dimension;
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  guests::BootSwitches phases(domain, boot);
  report::ProfileReport out;
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(
      options.profile,
      {.by = {Dimension::kDomain, Dimension::kThread, Dimension::kMode, Dimension::kFunction}}, out,
      /*observers=*/{}, &phases));
  if (!out.is_time) {
    return InvalidError("{} does not count time: choose another event with --event", out.event);
  }
  return report::BootFunctionsTable(boot, out, domain, shown);
}

nlohmann::ordered_json Json(const guests::Boot& boot, const BootTrace& trace,
                            const std::string& name, const report::BootOptions& shown) {
  nlohmann::ordered_json json;
  const guests::KernelClock& clock = trace.clock;
  json["domain"] = {{"id", clock.domain.value}, {"name", name}};
  json["begin_tsc"] = boot.parts.front().when.begin.value;
  json["end_tsc"] = boot.parts.back().when.end.value;
  json["boot_s"] = shown.clock.Seconds(boot.parts.back().when.end - boot.parts.front().when.begin);
  json["trace_bytes"] = trace.bytes();
  json["clock"] = {{"offset", clock.epochs.front().offset},
                   {"width", WidthOf(clock)},
                   {"events_inside", clock.inside},
                   {"events_outside", clock.outside},
                   {"events_untraced", clock.untraced}};
  json["initcalls_left_out"] = boot.kernel.initcalls_left_out;
  json["phases"] = report::ToJson(report::BootPhasesTable(boot, shown));
  json["initcalls"] = report::ToJson(report::BootInitcallsTable(boot, shown));
  json["exits"] = report::ToJson(report::BootExitsTable(boot, shown));
  return json;
}

std::string Text(const guests::Boot& boot, const BootTrace& trace, const std::string& name,
                 const std::string& by, const report::BootOptions& shown) {
  const report::TextStyle style = report::StdoutStyle();
  if (by == "exit") return report::ToText(report::BootExitsTable(boot, shown), style);
  if (by == "initcall") return report::ToText(report::BootInitcallsTable(boot, shown), style);
  const TscRange all{boot.parts.front().when.begin, boot.parts.back().when.end};
  const auto seconds = [&shown](Cycles cycles) {
    return report::CellText(shown.clock.Seconds(cycles), report::ColumnUnit::kSeconds);
  };
  return fmt::format("{} booted in {}; the times of its kernel's events are known to {}\n\n", name,
                     seconds(all.Length()), seconds(WidthOf(trace.clock))) +
         report::ToText(report::BootPhasesTable(boot, shown), style) + "\n" +
         report::ToText(report::BootInitcallsTable(boot, shown), style);
}

absl::Status ShowBoot(const BootCommandOptions& options) {
  if (options.kernel_options) return WriteStdout(std::string(kBootKernelOptions) + "\n");
  XENOSCOPE_ASSIGN_OR_RETURN(const profile::TraceInput input, OpenTraceInput(options.trace));
  if (!input.recording) {
    return InvalidError("{} is a trace of Xen alone: record with --boot", options.trace.path);
  }
  const recording::Recording& recording = *input.recording;
  XENOSCOPE_ASSIGN_OR_RETURN(const DomainId domain, ChooseBooted(recording, options.domain));
  const std::string name = DomainLabel(domain, recording.info().NameOf(domain));
  XENOSCOPE_ASSIGN_OR_RETURN(const BootTrace trace,
                             BootTrace::Open(recording, domain, input.trace));
  auto phases =
      guests::FindBootPhases(trace.kernel(), trace.clock.Events(), trace.initcalls, options.until);
  if (!phases.ok()) return InContext(phases.status(), name);
  XENOSCOPE_ASSIGN_OR_RETURN(const guests::Boot boot,
                             guests::FollowBoot(domain, *std::move(phases), input.trace));
  WarnOf(boot, trace.clock, name);
  const bool text = options.format == "text";
  const report::BootOptions shown{
      .clock = input.clock.value_or(recording.clock()),
      .vendor = profile::CompleteDialect(input.dialect, input.trace).vendor,
      .text = text,
      .limit = text ? options.limit : 0};
  if (options.by == "function") {
    XENOSCOPE_ASSIGN_OR_RETURN(const report::Table table, Functions(boot, domain, options, shown));
    if (text) return WriteStdout(report::ToText(table, report::StdoutStyle()));
    if (options.format == "csv") return WriteStdout(report::ToCsv(table));
    return WriteStdout(report::Dump(report::ToJson(table)));
  }
  if (options.format == "json") return WriteStdout(report::Dump(Json(boot, trace, name, shown)));
  if (text) return WriteStdout(Text(boot, trace, name, options.by, shown));
  if (options.by == "exit") return WriteStdout(report::ToCsv(report::BootExitsTable(boot, shown)));
  return WriteStdout(report::ToCsv(options.by == "initcall"
                                       ? report::BootInitcallsTable(boot, shown)
                                       : report::BootPhasesTable(boot, shown)));
}

}  // namespace

void AddBoot(Command program, CommandAction& run) {
  auto options = std::make_shared<BootCommandOptions>();
  Command command = program.AddSubcommand(
      "boot", "Show where the time of a guest's boot went, by levels of its kernel's initcalls");
  AddTraceOptions(command, options->trace);
  command
      .AddOption("-d,--domain", options->domain,
                 "Guest, by name or id; default: the one whose boot is in the recording")
      .ValueName(kDomainValue);
  command
      .AddOption("--until", options->until,
                 "End the boot where a thread first executes this program, a path or its last "
                 "part; default: with the last event that its kernel recorded")
      .ValueName("PROGRAM");
  command
      .AddOption("--by", options->by,
                 "What a row is: a phase, an initcall, a VM exit's reason in a phase (exit), or a "
                 "function in a phase, by samples. As text, phase shows the longest initcalls, "
                 "too; as JSON, phase, initcall and exit are one document")
      .OneOf({"phase", "initcall", "exit", "function"})
      .ShowDefault();
  command
      .AddOption("--limit", options->limit,
                 "Show at most this many initcalls, or exits or functions of a phase, as text; "
                 "0: all")
      .ShowDefault();
  command.AddOption("--format", options->format, "Output format: text, json or csv")
      .OneOf({"text", "json", "csv"})
      .ShowDefault();
  command.AddOption("-e,--event", options->profile.event, kEventHelp).ValueName(kEventValue);
  AddSymbolOptions(command, options->profile.symbols);
  command.AddFlag("--kernel-options", options->kernel_options,
                  "Print the options for the guest's kernel with which it records its boot, and "
                  "do nothing else");
  command.SetFooter(
      "Example:\n"
      "  xenoscope boot --kernel-options                # add them to extra= of web1.cfg\n"
      "  xenoscope record --boot web1 -o web1.xeno -- xl create web1.cfg\n"
      "  xenoscope boot web1.xeno --until nginx\n"
      "docs/boot.md describes the phases.");
  command.SetCallback([options, &run] {
    options->profile.input = options->trace.path;
    run = [options] { return ShowBoot(*options); };
  });
}

}  // namespace xenoscope::cli
