// `xenoscope shutdown`: where the time of a guest's shutdown went.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/kernel_traces.h"
#include "cli/output.h"
#include "cli/phase_views.h"
#include "cli/profile_source.h"
#include "cli/show_table.h"
#include "cli/symbol_options.h"
#include "cli/trace_options.h"
#include "guests/shutdown/shutdown.h"
#include "profile/trace_input.h"
#include "report/shutdown/shutdown_view.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

using recording::DomainChange;

struct ShutdownOptions {
  profile::TraceRequest trace;
  std::string domain;
  std::string from;
  std::string by = "phase";
  ProfileOptions profile;
  std::string format = "text";
  size_t limit = 10;
};

// Returns the domain that `text` names; if it is empty, the only one that ended in the recording.
absl::StatusOr<DomainId> ChooseEnded(const recording::Recording& recording,
                                     const std::string& text) {
  const recording::RecordingInfo& info = recording.info();
  if (!text.empty()) return ChooseDomain(&info, text);
  std::set<DomainId> ended;
  for (const DomainChange& change : info.changes) {
    if (guests::EndOf(change.domain, {&change, 1})) ended.insert(change.domain);
  }
  if (ended.empty()) {
    return NotFoundError("{} has no guest's end: record with --shutdown GUEST", recording.path());
  }
  if (ended.size() > 1) {
    std::vector<std::string> names;
    names.reserve(ended.size());
    for (const DomainId id : ended) names.push_back(DomainLabel(id, info.NameOf(id)));
    return InvalidError("{} has the ends of {}: choose one with --domain", recording.path(),
                        fmt::join(names, ", "));
  }
  return *ended.begin();
}

// Finds the phases that the domain's kernel recorded, and says on stderr what is missing of them.
absl::StatusOr<guests::ShutdownPhases> KernelPhases(const recording::Recording& recording,
                                                    const trace::TraceFile& xen, DomainId domain,
                                                    const std::string& name,
                                                    const std::string& from) {
  XENOSCOPE_ASSIGN_OR_RETURN(const KernelTraces kernels, OpenKernelTraces(recording, &xen));
  for (size_t i = 0; i < kernels.traces.size(); ++i) {
    const guests::KernelClock& clock = kernels.clocks[i];
    if (clock.domain != domain) continue;
    auto phases = guests::FindShutdownPhases(kernels.traces[i], clock.Events(), from);
    if (!phases.ok()) return InContext(phases.status(), name);
    WarnOfDamage(name, phases->faults);
    WarnOfClock(name, clock);
    if (phases->phases.empty()) {
      fmt::print(stderr, "xenoscope: {}: no event of its kernel shows when the shutdown began\n",
                 name);
    }
    if (phases->losses > 0) {
      fmt::print(stderr, "xenoscope: {}: events of its kernel were lost {} time{}\n", name,
                 phases->losses, phases->losses > 1 ? "s" : "");
    }
    if (phases->processes_left_out > 0) {
      fmt::print(stderr, "xenoscope: {}: {} processes are left out, as there are too many\n", name,
                 phases->processes_left_out);
    }
    return phases;
  }
  if (!from.empty()) {
    return NotFoundError("{}: --from needs the events of its kernel: record with --active {}", name,
                         name);
  }
  fmt::print(stderr,
             "xenoscope: {}: its kernel's events were not recorded, so this begins where the trace "
             "first has it: record with --active {}, and `xenoscope agent` in the guest\n",
             name, name);
  return guests::ShutdownPhases();
}

nlohmann::ordered_json Json(const guests::Shutdown& shutdown, DomainId domain,
                            const std::string& name, const report::PhaseOptions& shown) {
  nlohmann::ordered_json json;
  const TscRange all{shutdown.phases.front().when.begin, shutdown.phases.back().when.end};
  json["domain"] = {{"id", domain.value}, {"name", name}};
  json["end"] = report::EndText(shutdown.how);
  json["vcpus"] = shutdown.vcpus.size();
  json["begin_tsc"] = all.begin.value;
  json["guest_end_tsc"] = shutdown.guest_end.value;
  json["end_tsc"] = all.end.value;
  json["destroyed"] = shutdown.destroyed;
  json["shutdown_s"] = shown.clock.Seconds(all.Length());
  json["phases"] = report::ToJson(report::PhasesTable(shutdown.phases, "shutdown", shown));
  json["processes"] = report::ToJson(report::ShutdownProcessesTable(shutdown, shown));
  json["processes_left_out"] = shutdown.kernel.processes_left_out;
  json["exits"] = report::ToJson(report::PhaseExitsTable(shutdown.phases, shown));
  return json;
}

// Says how to see what the toolstack did at the end.
std::string DestroyLine(const guests::Shutdown& shutdown, const std::string& name,
                        const std::string& path) {
  if (!shutdown.destroyed) return "";
  const TscRange when = shutdown.phases.back().when;
  return fmt::format(
      "\nwhat dom0 did while it destroyed {}: xenoscope report {} --domain 0 --from @{} --to @{}\n",
      name, path, when.begin.value, when.end.value);
}

std::string Text(const guests::Shutdown& shutdown, const std::string& name, const std::string& path,
                 const report::PhaseOptions& shown) {
  const report::TextStyle style = report::StdoutStyle();
  const TscRange all{shutdown.phases.front().when.begin, shutdown.phases.back().when.end};
  const size_t vcpus = shutdown.vcpus.size();
  std::string text = fmt::format(
      "{} {} in {}; the times are of its {} vCPU{}\n\n", name, report::EndText(shutdown.how),
      report::CellText(shown.clock.Seconds(all.Length()), report::ColumnUnit::kSeconds), vcpus,
      vcpus == 1 ? "" : "s together");
  text += report::ToText(report::PhasesTable(shutdown.phases, "shutdown", shown), style);
  if (!shutdown.kernel.processes.empty()) {
    text += "\n" + report::ToText(report::ShutdownProcessesTable(shutdown, shown), style);
  }
  return text + DestroyLine(shutdown, name, path);
}

absl::Status ShowShutdown(const ShutdownOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const profile::TraceInput input, OpenTraceInput(options.trace));
  if (!input.recording) {
    return InvalidError("{} is a trace of Xen alone: record with --shutdown", options.trace.path);
  }
  const recording::Recording& recording = *input.recording;
  XENOSCOPE_ASSIGN_OR_RETURN(const DomainId domain, ChooseEnded(recording, options.domain));
  const std::string name = DomainLabel(domain, recording.info().NameOf(domain));
  XENOSCOPE_ASSIGN_OR_RETURN(guests::ShutdownPhases phases,
                             KernelPhases(recording, input.trace, domain, name, options.from));
  const auto followed =
      guests::FollowShutdown(domain, std::move(phases), recording.info().changes, input.trace);
  if (!followed.ok()) return InContext(followed.status(), name);
  const guests::Shutdown& shutdown = *followed;
  WarnOfUnread(shutdown.unread);
  if (!shutdown.destroyed) {
    fmt::print(
        stderr,
        "xenoscope: {}: the trace does not have its removal: the recording ended before, Xen "
        "keeps the domain for samples of source xenoprof, or its --trace-events leave domains "
        "out\n",
        name);
  }
  const bool text = options.format == "text";
  const report::PhaseOptions shown{
      .clock = input.clock.value_or(recording.clock()),
      .vendor = profile::CompleteDialect(input.dialect, input.trace).vendor,
      .text = text,
      .limit = text ? options.limit : 0};
  if (options.by == "function") {
    XENOSCOPE_ASSIGN_OR_RETURN(const report::Table table,
                               PhaseFunctions(shutdown.phases, guests::SwitchesOf(domain, shutdown),
                                              domain, options.profile, shown));
    return ShowTable(table, options.format);
  }
  if (options.format == "json") {
    return WriteStdout(report::Dump(Json(shutdown, domain, name, shown)));
  }
  if (options.by == "exit") {
    return ShowTable(report::PhaseExitsTable(shutdown.phases, shown), options.format);
  }
  if (options.by == "process") {
    return ShowTable(report::ShutdownProcessesTable(shutdown, shown), options.format);
  }
  if (text) return WriteStdout(Text(shutdown, name, recording.path(), shown));
  return ShowTable(report::PhasesTable(shutdown.phases, "shutdown", shown), options.format);
}

}  // namespace

void AddShutdown(Command program, CommandAction& run) {
  auto options = std::make_shared<ShutdownOptions>();
  Command command = program.AddSubcommand(
      "shutdown", "Show where the time of a guest's shutdown went, by phases");
  AddTraceOptions(command, options->trace);
  command
      .AddOption("-d,--domain", options->domain,
                 "Guest, by name or id; default: the one that ended in the recording")
      .ValueName(kDomainValue);
  command
      .AddOption("--from", options->from,
                 "Begin where a thread first executes this program, a path or its last part; "
                 "default: poweroff, reboot, halt or shutdown")
      .ValueName("PROGRAM");
  command
      .AddOption("--by", options->by,
                 "What a row is: a phase, a process that ended, a VM exit's reason in a phase "
                 "(exit), or a function in a phase, by samples. As text, phase shows the processes "
                 "that took the longest, too; as JSON, phase, process and exit are one document")
      .OneOf({"phase", "process", "exit", "function"})
      .ShowDefault();
  command
      .AddOption("--limit", options->limit,
                 "Show at most this many processes, or exits or functions of a phase, as text; 0: "
                 "all")
      .ShowDefault();
  command.AddOption("--format", options->format, "Output format: text, json or csv")
      .OneOf({"text", "json", "csv"})
      .ShowDefault();
  command.AddOption("-e,--event", options->profile.event, kEventHelp).ValueName(kEventValue);
  AddSymbolOptions(command, options->profile.symbols);
  command.SetFooter(
      "Example:\n"
      "  xenoscope record --shutdown web1 --active web1 -o web1.xeno -- xl shutdown web1\n"
      "  xenoscope shutdown web1.xeno\n"
      "  xenoscope shutdown web1.xeno --by function\n"
      "docs/shutdown.md describes the phases.");
  command.SetCallback([options, &run] {
    options->profile.input = options->trace.path;
    run = [options] { return ShowShutdown(*options); };
  });
}

}  // namespace xenoscope::cli
