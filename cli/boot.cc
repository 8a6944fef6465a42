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
#include "cli/call_views.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/kernel_traces.h"
#include "cli/output.h"
#include "cli/phase_views.h"
#include "cli/profile_source.h"
#include "cli/show_table.h"
#include "cli/symbol_options.h"
#include "cli/trace_options.h"
#include "guests/boot/boot.h"
#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "profile/trace_input.h"
#include "report/boot/boot_view.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal.h"
#include "sampler/ftrace/boot_trace.h"
#include "sampler/ftrace/function_patterns.h"

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
  std::vector<std::string> functions;  // patterns
  CallViewOptions calls;
};

constexpr size_t kPageSize = 4096;  // of a kernel's trace, on x86

// Says on stderr what of the boot is missing.
void WarnOf(const guests::Boot& boot, const BootTrace& trace, const std::string& name) {
  const guests::BootPhases& kernel = boot.kernel;
  if (!boot.begins_in_trace) {
    fmt::print(stderr, "xenoscope: {} ran when the trace began: what it did before is not known\n",
               name);
  }
  if (kernel.lost_begin || kernel.losses > 0) {
    fmt::print(stderr,
               "xenoscope: {}: events of its kernel were lost{}: boot it with a larger "
               "trace_buf_size{}\n",
               name, kernel.lost_begin ? ", those before the first phase" : "",
               kernel.function_events.events > 0 ? ", or trace fewer functions" : "");
  }
  if (sampler::IsCutBootTrace(trace.bytes(), kPageSize)) {
    fmt::print(stderr,
               "xenoscope: {}: of its kernel's events its agent took the first {} MiB: those after "
               "these are missing{}\n",
               name, sampler::kMaxBootTraceBytes >> 20,
               kernel.function_events.events > 0 ? ", trace fewer functions" : "");
  }
  WarnOfUnread(boot.unread);
  WarnOfDamage(name, kernel.faults);
  WarnOfClock(name, trace.clock);
}

nlohmann::ordered_json Json(const guests::Boot& boot, const BootTrace& trace,
                            const std::string& name, const report::PhaseOptions& shown) {
  nlohmann::ordered_json json;
  const guests::KernelClock& clock = trace.clock;
  json["domain"] = {{"id", clock.domain.value}, {"name", name}};
  json["begin_tsc"] = boot.phases.front().when.begin.value;
  json["end_tsc"] = boot.phases.back().when.end.value;
  json["boot_s"] =
      shown.clock.Seconds(boot.phases.back().when.end - boot.phases.front().when.begin);
  json["trace_bytes"] = trace.bytes();
  json["clock"] = {{"offset", clock.epochs.front().offset},
                   {"width", WidthOf(clock)},
                   {"events_inside", clock.inside},
                   {"events_outside", clock.outside},
                   {"events_untraced", clock.untraced}};
  json["function_events"] = boot.kernel.function_events.events;
  json["function_bytes"] = boot.kernel.function_events.bytes;
  json["initcalls_left_out"] = boot.kernel.initcalls_left_out;
  json["phases"] = report::ToJson(report::BootPhasesTable(boot, shown));
  json["initcalls"] = report::ToJson(report::BootInitcallsTable(boot, shown));
  json["exits"] = report::ToJson(report::PhaseExitsTable(boot.phases, shown));
  return json;
}

// Says what tracing functions cost, or nothing where none were.
std::string FunctionLine(const guests::FunctionEvents& events) {
  if (events.events == 0) return "";
  return fmt::format("tracing functions made {} events, {} bytes: the times include that\n",
                     report::CellText(events.events, report::ColumnUnit::kCount),
                     report::CellText(events.bytes, report::ColumnUnit::kCount));
}

std::string Text(const guests::Boot& boot, const BootTrace& trace, const std::string& name,
                 const report::PhaseOptions& shown) {
  const report::TextStyle style = report::StdoutStyle();
  const TscRange all{boot.phases.front().when.begin, boot.phases.back().when.end};
  const auto seconds = [&shown](Cycles cycles) {
    return report::CellText(shown.clock.Seconds(cycles), report::ColumnUnit::kSeconds);
  };
  return fmt::format("{} booted in {}; the times of its kernel's events are known to {}\n{}\n",
                     name, seconds(all.Length()), seconds(WidthOf(trace.clock)),
                     FunctionLine(boot.kernel.function_events)) +
         report::ToText(report::BootPhasesTable(boot, shown), style) + "\n" +
         report::ToText(report::BootInitcallsTable(boot, shown), style);
}

// Shows the calls of functions by the phase in which the outermost one began.
absl::Status ShowBootCalls(const guests::Boot& boot, const BootTrace& trace,
                           const BootCommandOptions& options, const profile::TraceInput& input,
                           const std::string& name, Clock clock) {
  const DomainId domain = trace.clock.domain;
  std::vector<guests::ThreadStates> threads;
  threads.emplace_back(trace.kernel(), trace.clock.Events());
  std::vector<Tsc> begins;
  report::CallGroups groups{.columns = {{"phase", "phase"}}, .words = {}};
  for (const guests::BootPhase& phase : boot.kernel.phases) {
    begins.push_back(phase.begin);
    groups.words.push_back({phase.name});
  }
  const size_t phases = begins.size();
  begins.push_back(boot.kernel.end + 1);  // an event at the end is of the last phase
  threads[0].SetCallParts(std::move(begins));
  XENOSCOPE_RETURN_IF_ERROR(guests::FollowThreads(threads, &input.trace).status());
  const guests::CallTrees& calls = threads[0].calls();
  if (calls.nodes().empty()) {
    return NotFoundError(
        "{} has no functions of {}: boot it with the options of `xenoscope boot --kernel-options "
        "--guest-functions PATTERN`",
        input.recording->path(), name);
  }
  WarnOfCalls(name, calls);
  XENOSCOPE_ASSIGN_OR_RETURN(const symbolizer::LoadedSymbols symbols,
                             LoadSymbols(options.profile.symbols, input.recording));
  report::CallForest forest;
  forest.Add(calls.nodes(), KernelFunctionNames(*symbols.resolver, domain),
             [phases](size_t /*thread*/, uint32_t part) {
               return part < phases ? std::optional<size_t>(part) : std::nullopt;
             });
  return ShowCalls(forest, groups, options.calls, clock);
}

absl::Status ShowBoot(const BootCommandOptions& options) {
  if (options.kernel_options) return WriteStdout(BootKernelOptions(options.functions) + "\n");
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
  WarnOf(boot, trace, name);
  const bool text = options.format == "text";
  const Clock clock = input.clock.value_or(recording.clock());
  if (options.calls.Wanted()) return ShowBootCalls(boot, trace, options, input, name, clock);
  const report::PhaseOptions shown{
      .clock = clock,
      .vendor = profile::CompleteDialect(input.dialect, input.trace).vendor,
      .text = text,
      .limit = text ? options.limit : 0};
  if (options.by == "function") {
    XENOSCOPE_ASSIGN_OR_RETURN(const report::Table table,
                               PhaseFunctions(boot.phases, guests::SwitchesOf(domain, boot), domain,
                                              options.profile, shown));
    return ShowTable(table, options.format);
  }
  if (options.format == "json") return WriteStdout(report::Dump(Json(boot, trace, name, shown)));
  if (options.by == "exit") {
    return ShowTable(report::PhaseExitsTable(boot.phases, shown), options.format);
  }
  if (options.by == "initcall") {
    return ShowTable(report::BootInitcallsTable(boot, shown), options.format);
  }
  if (text) return WriteStdout(Text(boot, trace, name, shown));
  return ShowTable(report::BootPhasesTable(boot, shown), options.format);
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
                 "Show at most this many initcalls, or exits, functions or calls of a phase, as "
                 "text; 0: all")
      .ShowDefault();
  command.AddOption("--format", options->format, "Output format: text, json or csv")
      .OneOf({"text", "json", "csv"})
      .ShowDefault();
  command.AddOption("-e,--event", options->profile.event, kEventHelp).ValueName(kEventValue);
  AddSymbolOptions(command, options->profile.symbols);
  command.AddFlag("--kernel-options", options->kernel_options,
                  "Print the options for the guest's kernel with which it records its boot, and "
                  "do nothing else");
  command
      .AddOption("--guest-functions", options->functions,
                 "With --kernel-options: those with which it traces its functions, too, from the "
                 "level core on: those with these names, in which * stands for any characters")
      .ValueName("PATTERN,...")
      .SplitAt(',')
      .Repeatable();
  command
      .AddFlag("--calls", options->calls.calls,
               "Instead of initcalls, show the functions that were called most in each phase; of a "
               "guest that traced them")
      .Excludes("--kernel-options");
  command
      .AddFlag("--call-tree", options->calls.call_tree,
               "Instead of initcalls, show who called whom in each phase, as a tree")
      .Excludes("--kernel-options")
      .Excludes("--calls");
  command.SetFooter(
      "Example:\n"
      "  xenoscope boot --kernel-options                # add them to extra= of web1.cfg\n"
      "  xenoscope record --boot web1 -o web1.xeno -- xl create web1.cfg\n"
      "  xenoscope boot web1.xeno --until nginx\n"
      "  xenoscope boot --kernel-options --guest-functions 'pci_*'    # and functions\n"
      "  xenoscope boot web1.xeno --call-tree\n"
      "docs/boot.md describes the phases.");
  command.SetCallback([options, &run] {
    options->profile.input = options->trace.path;
    options->calls.format = options->format;
    options->calls.limit = options->limit;
    if (!options->functions.empty() && !options->kernel_options) {
      ThrowUsageError("--guest-functions", "goes with --kernel-options only");
    }
    const absl::Status functions = sampler::CheckFunctionPatterns(options->functions);
    if (!functions.ok()) ThrowUsageError("--guest-functions", std::string(Message(functions)));
    run = [options] { return ShowBoot(*options); };
  });
}

}  // namespace xenoscope::cli
