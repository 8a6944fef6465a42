// `xenoscope threads`: which threads of dom0 and guests ran, and what they waited for.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/call_views.h"
#include "cli/commands.h"
#include "cli/hot_functions.h"
#include "cli/instant.h"
#include "cli/kernel_traces.h"
#include "cli/output.h"
#include "cli/thread_path.h"
#include "cli/trace_dat.h"
#include "cli/trace_options.h"
#include "guests/clock/claimed_times.h"
#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "profile/trace_input.h"
#include "recording/recording.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal.h"
#include "report/threads/claims_view.h"
#include "report/threads/interrupts_view.h"
#include "report/threads/locks_view.h"
#include "report/threads/syscalls_view.h"
#include "report/threads/thread_exits_view.h"
#include "report/threads/threads_view.h"
#include "trace/probe.h"

namespace xenoscope::cli {
namespace {

struct ThreadsCommandOptions {
  profile::TraceRequest trace;
  std::string by = "thread";
  std::string format = "text";
  std::string output;
  size_t limit = 40;
  bool culprits = false;
  bool functions = false;
  bool exits = false;
  bool syscalls = false;
  bool locks = false;
  bool irqs = false;
  bool proc_stat = false;
  CallViewOptions calls;
  std::string path;
  std::optional<Instant> from;
  std::optional<Instant> to;
};

constexpr const char* kTraceDat = "trace.dat";

report::ThreadsBy ByOf(const std::string& word) {
  if (word == "domain") return report::ThreadsBy::kDomain;
  if (word == "container") return report::ThreadsBy::kContainer;
  return word == "process" ? report::ThreadsBy::kProcess : report::ThreadsBy::kThread;
}

// The events of a domain's kernel, and what became of them.
struct EventCounts {
  uint64_t read = 0;
  uint64_t lost = 0;             // by the kernel's count; known at the end of the recording only
  std::optional<uint64_t> gave;  // events that the kernel says it gave
};

EventCounts CountsOf(const guests::ThreadStates& domain, const recording::RecordingInfo& info) {
  EventCounts counts{.read = domain.events(), .lost = 0, .gave = std::nullopt};
  for (const recording::KernelTraceInfo& trace : info.kernel_traces) {
    if (trace.vcpu.domain != domain.domain()) continue;
    counts.gave = counts.gave.value_or(0) + trace.read;
    counts.lost += trace.lost;
  }
  return counts;
}

// Says on stderr what of a domain's events is missing.
void WarnOfFaults(const guests::ThreadStates& domain, const recording::RecordingInfo& info) {
  const std::string name = DomainLabel(domain.domain(), info.NameOf(domain.domain()));
  const EventCounts counts = CountsOf(domain, info);
  if (counts.lost > 0) {
    fmt::print(
        stderr,
        "xenoscope: {}: {} kernel events were lost, of {}: what its threads did meanwhile is "
        "in \"events lost\"\n",
        name, counts.lost, counts.lost + counts.read);
  }
  if (counts.gave && *counts.gave != counts.read) {
    fmt::print(stderr, "xenoscope: {}: its kernel gave {} events, and {} are in the recording\n",
               name, *counts.gave, counts.read);
  }
  if (domain.missed_switches() > 0) {
    fmt::print(stderr,
               "xenoscope: {}: its kernel has no event of {} switches of threads: what ran around "
               "them is not known, and the time is in \"events lost\"\n",
               name, domain.missed_switches());
  }
  WarnOfDamage(name, domain.faults());
}

// Returns the clock of a domain, with what contradicts it.
nlohmann::ordered_json Json(const guests::KernelClock& clock) {
  nlohmann::ordered_json json;
  nlohmann::ordered_json& epochs = json["epochs"] = nlohmann::ordered_json::array();
  for (const guests::ClockEpoch& epoch : clock.epochs) {
    nlohmann::ordered_json ranges = nlohmann::ordered_json::array();
    for (const correlate::OffsetRange& range : epoch.ranges) {
      ranges.push_back({range.min, range.max});
    }
    epochs.push_back({{"set_before_tsc", epoch.set_before.value},
                      {"offset", epoch.offset},
                      {"possible_offsets", std::move(ranges)}});
  }
  json["answers"] = clock.answers;
  json["contradicting_answers"] = clock.bad_answers;
  json["events_inside"] = clock.inside;
  json["events_outside"] = clock.outside;
  json["events_untraced"] = clock.untraced;
  return json;
}

nlohmann::ordered_json Json(const std::vector<guests::ThreadStates>& domains,
                            const std::vector<guests::KernelClock>& clocks,
                            const recording::RecordingInfo& info, const report::Table& table) {
  nlohmann::ordered_json json;
  json["domains"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < domains.size(); ++i) {
    const guests::ThreadStates& domain = domains[i];
    const EventCounts counts = CountsOf(domain, info);
    const guests::KernelTraceFaults faults = domain.faults();
    json["domains"].push_back({{"id", domain.domain().value},
                               {"name", info.NameOf(domain.domain())},
                               {"vcpus", domain.vcpus().size()},
                               {"events", counts.read},
                               {"lost_events", counts.lost},
                               {"damaged_bytes", faults.damaged_bytes},
                               {"malformed_events", faults.malformed},
                               {"disordered_events", faults.disordered},
                               {"missed_switches", domain.missed_switches()},
                               {"clock", Json(clocks[i])}});
  }
  json["rows"] = report::ToJson(table);
  return json;
}

absl::Status ShowPath(const ThreadsCommandOptions& options, const recording::Recording& recording,
                      const std::optional<profile::TraceInput>& input,
                      const KernelTraces& kernels) {
  const trace::TraceFile* const xen = input ? &input->trace : nullptr;
  const Clock clock = options.trace.clock.value_or(recording.clock());
  const recording::RecordingInfo& info = recording.info();
  PathRequest request{.thread = options.path, .range = {}, .format = options.format};
  Tsc zero = info.started;
  if (xen != nullptr) zero = trace::ProbeTrace(*xen).first_tsc.value_or(zero);
  XENOSCOPE_ASSIGN_OR_RETURN(request.range,
                             RangeOf(options.from, options.to, {zero, clock, &info},
                                     {info.started, std::max(info.started, info.stopped)}));
  if (request.range.Empty()) return InvalidError("--to is not after --from");
  const bool text = options.format == "text";
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string shown,
      ThreadPath(request, kernels, xen, info, clock,
                 {.by = ByOf(options.by), .text = text, .limit = text ? options.limit : 0}));
  return WriteStdout(shown);
}

// Shows what kernels say of idle and stolen time beside what was true.
absl::StatusOr<report::Table> ClaimsOf(const KernelTraces& kernels, const trace::TraceFile* xen,
                                       const recording::Recording& recording, Clock clock,
                                       const report::ThreadsOptions& shown) {
  std::vector<const guests::KernelTrace*> traces;
  for (const guests::KernelTrace& trace : kernels.traces) traces.push_back(&trace);
  XENOSCOPE_ASSIGN_OR_RETURN(const guests::Claims claims,
                             guests::CompareClaims(traces, kernels.clocks, clock, xen));
  const auto name_of = [&](DomainId domain) { return recording.info().NameOf(domain); };
  for (const auto& [vcpu, why] : claims.left_out) {
    fmt::print(stderr, "xenoscope: {} vCPU {}: what its kernel says of its time {}: left out\n",
               DomainLabel(vcpu.domain, name_of(vcpu.domain)), vcpu.vcpu.value, why);
  }
  if (claims.vcpus.empty()) {
    return NotFoundError(
        "{} does not have what kernels say of their CPUs: record with --threads, by this "
        "xenoscope, in guests, too",
        recording.path());
  }
  return report::ClaimsTable(claims, name_of, clock, shown);
}

bool HasSystemCalls(const std::vector<guests::ThreadStates>& domains) {
  return std::ranges::any_of(
      domains, [](const guests::ThreadStates& domain) { return !domain.SystemCalls().empty(); });
}

bool HasLocks(const std::vector<guests::ThreadStates>& domains) {
  return std::ranges::any_of(
      domains, [](const guests::ThreadStates& domain) { return !domain.Locks().empty(); });
}

absl::Status ShowThreads(const ThreadsCommandOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::Recording recording,
                             recording::Recording::Open(options.trace.path));
  std::optional<profile::TraceInput> input;
  if (recording.info().trace) {
    XENOSCOPE_ASSIGN_OR_RETURN(input, OpenTraceInput(options.trace));
  } else {
    fmt::print(stderr,
               "xenoscope: there is no trace of Xen in it, so what vCPUs did is not known: threads "
               "on them are \"untraced\"\n");
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const KernelTraces kernels,
                             OpenKernelTraces(recording, input ? &input->trace : nullptr));
  if (kernels.traces.empty()) {
    return NotFoundError("{} has no kernel's events: record with --threads", recording.path());
  }
  for (const guests::KernelClock& clock : kernels.clocks) {
    const DomainId id = clock.domain;
    WarnOfClock(DomainLabel(id, recording.info().NameOf(id)), clock);
  }
  if (!options.path.empty()) return ShowPath(options, recording, input, kernels);
  std::vector<guests::ThreadStates> domains = ThreadsOf(kernels);
  XENOSCOPE_ASSIGN_OR_RETURN(const trace::UnreadCounts unread,
                             guests::FollowThreads(domains, input ? &input->trace : nullptr));
  WarnOfUnread(unread);
  const recording::RecordingInfo& info = recording.info();
  for (const guests::ThreadStates& domain : domains) WarnOfFaults(domain, info);
  const bool text = options.format == "text";
  const auto name_of = [&info](DomainId domain) { return info.NameOf(domain); };
  const Clock clock = options.trace.clock.value_or(recording.clock());
  if (options.format == kTraceDat) {
    return ExportTraceDat(options.output, recording, input ? &*input : nullptr, kernels, domains,
                          clock);
  }
  const report::ThreadsOptions shown{
      .by = ByOf(options.by), .text = text, .limit = text ? options.limit : 0};
  if (options.calls.Wanted()) {
    report::CallForest forest;
    XENOSCOPE_ASSIGN_OR_RETURN(const report::CallGroups groups,
                               AddCallsOfThreads(domains, recording, shown, forest));
    return ShowCalls(forest, groups, options.calls, clock);
  }
  report::Table table;
  if (options.exits) {
    const trace::Vendor vendor =
        input ? profile::CompleteDialect(input->dialect, input->trace).vendor : trace::Vendor();
    table = report::ThreadExitsTable(domains, name_of, clock, vendor, shown);
  } else if (options.syscalls) {
    if (!HasSystemCalls(domains)) {
      return NotFoundError(
          "{} has no system calls: record with --threads --guest-events raw_syscalls",
          recording.path());
    }
    table = report::SyscallsTable(domains, name_of, clock, shown);
  } else if (options.locks) {
    if (!HasLocks(domains)) {
      return NotFoundError(
          "{} has no waits for locks: record with --threads --guest-events lock (Linux 5.19 and "
          "later have these events)",
          recording.path());
    }
    table = report::LocksTable(domains, name_of, clock, shown);
  } else if (options.proc_stat) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        table, ClaimsOf(kernels, input ? &input->trace : nullptr, recording, clock, shown));
  } else if (options.irqs) {
    table = report::InterruptsTable(domains, name_of, clock, shown);
  } else if (options.culprits) {
    report::HotFunctions functions;
    if (options.functions) {
      std::vector<DomainId> waiting(domains.size());
      std::ranges::transform(domains, waiting.begin(), &guests::ThreadStates::domain);
      XENOSCOPE_ASSIGN_OR_RETURN(functions, HotFunctionsOf(options.trace.path, shown.by, waiting));
    }
    XENOSCOPE_ASSIGN_OR_RETURN(table,
                               report::CulpritsTable(domains, name_of, clock, shown,
                                                     options.functions ? &functions : nullptr));
  } else {
    table = report::ThreadsTable(domains, name_of, clock, shown);
  }
  if (options.format == "json")
    return WriteStdout(report::Dump(Json(domains, kernels.clocks, info, table)));
  if (options.format == "csv") return WriteStdout(report::ToCsv(table));
  return WriteStdout(report::ToText(table, report::StdoutStyle()));
}

}  // namespace

void AddThreads(Command program, CommandAction& run) {
  auto options = std::make_shared<ThreadsCommandOptions>();
  Command command =
      program.AddSubcommand("threads", "Show which threads ran on vCPUs, and what they waited for");
  AddTraceOptions(command, options->trace);
  command.AddOption("--by", options->by, "What a row is: thread, process, container or domain")
      .OneOf({"thread", "process", "container", "domain"})
      .ShowDefault();
  // Each view excludes those that were added before.
  std::vector<std::string> views;
  const auto exclude_views = [&views](Option option) {
    for (const std::string& view : views) option.Excludes(view);
  };
  const auto add_view = [&](const std::string& name, bool& flag, const std::string& about) {
    exclude_views(command.AddFlag(name, flag, about));
    views.push_back(name);
  };
  add_view("--culprits", options->culprits,
           "Instead of all states, show who ran while threads waited: for a pCPU (by Xen's "
           "scheduler) or for a vCPU (by their kernel's)");
  command.AddFlag("--functions", options->functions,
                  "With --culprits: the function in which each culprit was most, by the samples of "
                  "the recording, while the thread's domain waited for it, and its share of them");
  add_view("--exits", options->exits,
           "Instead of all states, show what Xen did for threads: VM exits by reason and "
           "subreason, with their time (HVM, PVH); a PV guest's hypercalls and traps, of which "
           "the trace has no end, with their number");
  add_view("--syscalls", options->syscalls,
           "Instead of all states, show system calls: how many, how long, and what threads did "
           "meanwhile; of a recording with --guest-events raw_syscalls");
  add_view("--irqs", options->irqs,
           "Instead of threads, show the handlers of kernels' interrupts: how often they ran, "
           "how long, and how long Xen kept their vCPU meanwhile");
  add_view("--proc-stat", options->proc_stat,
           "Instead of threads, show what kernels say that their vCPUs did (/proc/stat: busy, "
           "steal, idle), beside what was true by Xen's trace (ran, waited, blocked); --by "
           "domain: sums");
  add_view("--locks", options->locks,
           "Instead of all states, show waits for locks of kernels: how many, how long, what "
           "threads did meanwhile, and how long another thread's vCPU waited for a pCPU; of a "
           "recording with --guest-events lock");
  add_view("--calls", options->calls.calls,
           "Instead of all states, show the functions of kernels that threads called most, with "
           "their time; of a recording with --guest-functions");
  add_view("--call-tree", options->calls.call_tree,
           "Instead of all states, show which function of kernels called which, as a tree");
  exclude_views(
      command
          .AddOption("--path", options->path,
                     "Instead of all threads, show on what one waited: its critical path. While it "
                     "sleeps, the path is that of the thread that woke it, also in another domain")
          .ValueName("DOMAIN/TID"));
  command.AddWordOption(
      "--from",
      [options](const std::string& text) { options->from = ParseInstant("--from", text); },
      std::string("With --path: begin; default: that of the recording: ") + kInstantHelp);
  command.AddWordOption(
      "--to", [options](const std::string& text) { options->to = ParseInstant("--to", text); },
      "With --path: end (not included), as --from");
  command
      .AddOption("--limit", options->limit,
                 "Show at most this many rows as text, of calls for each thread; 0: all")
      .ShowDefault();
  command
      .AddOption("--format", options->format,
                 "Output format: text, json or csv; trace.dat: all events of kernels and of Xen, "
                 "for trace-cmd, KernelShark and Trace Compass")
      .OneOf({"text", "json", "csv", kTraceDat})
      .ShowDefault();
  command.AddOption("-o,--output", options->output, "With --format trace.dat: directory to make")
      .ValueName("DIRECTORY");
  command.SetFooter(
      "Example:\n"
      "  xenoscope record --threads -o web.xeno -- sleep 10\n"
      "  xenoscope threads web.xeno --by process\n"
      "  xenoscope threads web.xeno --exits --by container    # hypercalls, page faults, I/O, ...\n"
      "  xenoscope record --threads --guest-events raw_syscalls -o web.xeno -- sleep 10\n"
      "  xenoscope threads web.xeno --syscalls --by process    # as perf trace -s, with Xen's "
      "part\n"
      "  xenoscope record --threads --guest-events lock -o web.xeno -- sleep 10\n"
      "  xenoscope threads web.xeno --locks    # as perf lock contention, with Xen's part\n"
      "  xenoscope record --threads --guest-functions 'tcp_*' -o web.xeno -- sleep 10\n"
      "  xenoscope threads web.xeno --call-tree --by process\n"
      "  xenoscope threads web.xeno --path web1/1234 --from 2.5 --to 2.6\n"
      "  xenoscope threads web.xeno --format trace.dat -o web; kernelshark web/xen.dat -a "
      "web/web1.dat");
  command.SetCallback([options, &run] {
    if (options->path.empty() && (options->from || options->to)) {
      ThrowUsageError(options->from ? "--from" : "--to", "goes with --path only");
    }
    options->calls.format = options->format;
    options->calls.limit = options->limit;
    options->calls.longest_first = true;
    if (options->functions && !options->culprits) {
      ThrowUsageError("--functions", "goes with --culprits only");
    }
    const bool is_export = options->format == kTraceDat;
    if (is_export && (options->culprits || options->exits || options->syscalls || options->irqs ||
                      options->locks || options->proc_stat || options->calls.Wanted() ||
                      !options->path.empty())) {
      ThrowUsageError("--format", "trace.dat has all events, and no table");
    }
    if (is_export == options->output.empty()) {
      ThrowUsageError("-o", is_export ? "names the directory for --format trace.dat"
                                      : "goes with --format trace.dat only");
    }
    run = [options] { return ShowThreads(*options); };
  });
}

}  // namespace xenoscope::cli
