// xenoscope stat: totals of events, as perf stat has them.
//
// Counters count a command, or all CPUs of this Linux. For domains of Xen the totals of hardware
// events come from samples, which `record` takes meanwhile, and the run time of vCPUs from Xen.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stat_counters.h"
#include "cli/stat_guests.h"
#include "cli/stat_run_times.h"
#include "cli/stat_sampled.h"
#include "report/stat/stat_view.h"
#include "report/table/table_json.h"
#include "report/terminal.h"
#include "sampler/child_process.h"
#include "sampler/signals.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::cli {
namespace {

using profile::TotalsBy;
using sampler::CounterScope;
using sampler::EventSpec;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr double kMinStatSeconds = 0.001;
constexpr double kMaxStatSeconds = 1e9;
// The longest time between the end of a command and when it is noticed.
constexpr nanoseconds kCommandPoll = std::chrono::milliseconds(1);
constexpr int kCommandTimeoutMs = 3000;

struct StatOptions {
  std::vector<std::string> events;
  std::vector<std::string> domains;
  std::vector<std::string> active;
  bool all = false;
  std::string per = "total";
  std::string source = "auto";
  std::optional<double> interval_ms;
  double duration_s = 0;
  uint32_t runs = 1;
  std::string format = "text";
  std::string output;
  std::vector<std::string> command;
};

TotalsBy By(const StatOptions& options) {
  if (options.per == "vcpu" || options.per == "cpu") return TotalsBy::kVcpu;
  if (options.per == "pcpu") return TotalsBy::kPcpu;
  const bool by_domain =
      options.per == "domain" || !options.domains.empty() || !options.active.empty();
  return by_domain ? TotalsBy::kDomain : TotalsBy::kAll;
}

// Whether more than a command's processes are counted.
bool CountsSystem(const StatOptions& options) {
  return options.all || options.per != "total" || !options.domains.empty() ||
         !options.active.empty();
}

nanoseconds FromSeconds(double seconds) { return nanoseconds(static_cast<int64_t>(seconds * 1e9)); }
double StatSeconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// Returns what is counted, of Xen's domains or of this Linux.
std::string SubjectOf(const StatOptions& options, bool of_domains) {
  std::string command = fmt::format("`{}`", fmt::join(options.command, " "));
  if (!CountsSystem(options)) return command;
  const std::string meanwhile = options.command.empty() ? "" : " during " + command;
  if (of_domains) return "domains of Xen" + meanwhile;
  if (options.active.empty()) return "all processes" + meanwhile;
  return fmt::format("all processes of dom0 and {}{}", fmt::join(options.active, ", "), meanwhile);
}

// Writes reports one after the other.
class StatWriter {
 public:
  StatWriter(const StatOptions& options, bool of_domains)
      : options_(options), of_domains_(of_domains) {}

  absl::Status Write(profile::EventTotals totals, std::optional<double> time) {
    report::StatReport report;
    report.totals = std::move(totals);
    report.by = By(options_);
    report.subject = SubjectOf(options_, of_domains_);
    report.runs = runs_;
    report.time = time;
    report.domain_name = domain_name;
    const std::string text = TextOf(report);
    is_first_ = false;
    if (options_.output.empty()) return WriteStdout(text);
    written_ += text;
    return WriteFile(options_.output, written_);
  }

  // Sets the number of runs of which the totals are means.
  void SetRuns(uint32_t runs) { runs_ = runs; }

  std::function<std::string(DomainId)> domain_name = [](DomainId) { return std::string(); };

 private:
  [[nodiscard]] std::string TextOf(const report::StatReport& report) const {
    if (options_.format == "csv") return report::StatCsv(report, is_first_);
    if (options_.format == "json") {
      // Of intervals, each is a line of its own.
      return report.time ? JsonText(report::StatJson(report)) + "\n"
                         : report::Dump(StatJson(report));
    }
    const report::TextStyle style =
        options_.output.empty() ? report::StdoutStyle() : report::TextStyle();
    return (is_first_ ? "" : "\n") + report::StatText(report, style);
  }

  const StatOptions& options_;
  bool of_domains_;
  std::string written_;
  uint32_t runs_ = 1;
  bool is_first_ = true;
};

// Waits for the end of what is counted, and for intervals.
class StatLoop {
 public:
  explicit StatLoop(const StatOptions& options) : begun_(steady_clock::now()), last_(begun_) {
    if (options.duration_s > 0) end_ = begun_ + FromSeconds(options.duration_s);
    if (options.interval_ms) interval_ = FromSeconds(*options.interval_ms / 1000);
  }

  // Waits for the end of the command, of the duration, or for a signal, and returns whether it was
  // a signal. Calls `on_interval` when an interval has passed, and `on_turn` each second at least.
  template <typename OnInterval, typename OnTurn>
  absl::StatusOr<bool> Run(const sampler::EndSignals& signals,
                           std::optional<sampler::ChildProcess>& command, OnInterval on_interval,
                           OnTurn on_turn) {
    while (true) {
      steady_clock::time_point until = steady_clock::now() + std::chrono::seconds(1);
      if (command) until = steady_clock::now() + kCommandPoll;
      if (end_) until = std::min(until, *end_);
      if (interval_) until = std::min(until, last_ + *interval_);
      if (signals.WaitUntil(until)) return true;
      if (command && command->Poll()) return false;
      const steady_clock::time_point now = steady_clock::now();
      if (end_ && now >= *end_) return false;
      if (interval_ && now >= last_ + *interval_) XENOSCOPE_RETURN_IF_ERROR(on_interval());
      on_turn();
    }
  }

  // Returns the length of the stretch that ends now, in seconds, and begins the next one.
  double NextStretch() {
    const steady_clock::time_point now = steady_clock::now();
    const double seconds = StatSeconds(now - last_);
    last_ = now;
    return seconds;
  }
  // Returns the seconds from the begin to the end of the last stretch.
  [[nodiscard]] double Elapsed() const { return StatSeconds(last_ - begun_); }

 private:
  steady_clock::time_point begun_;
  steady_clock::time_point last_;
  std::optional<steady_clock::time_point> end_;
  std::optional<nanoseconds> interval_;
};

// One run of what is counted.
struct Run {
  profile::EventTotals totals;  // those after the last whole interval
  double elapsed = 0;           // its length in seconds
  bool interrupted = false;     // whether a signal ended it
  int exit_status = 0;          // of the command
};

// Counts one run by counters, and by those of guests, and writes the totals of whole intervals.
absl::StatusOr<Run> CountRun(const StatOptions& options, const std::vector<EventSpec>& events,
                             std::optional<DomainId> domain, StatGuests& guests,
                             StatWriter& writer) {
  const sampler::EndSignals signals;
  const CounterScope scope = CountsSystem(options) ? CounterScope::kCpus : CounterScope::kChildren;
  XENOSCOPE_ASSIGN_OR_RETURN(StatCounters counters, StatCounters::Open(events, scope, domain));
  if (!options.events.empty()) {  // the default ones are those that most machines have
    for (const std::string& note : counters.Notes()) fmt::print(stderr, "note: {}\n", note);
  }
  std::optional<StatRunTimes> run_times;
  const bool is_of_domains = domain && options.per != "cpu" && By(options) != TotalsBy::kAll;
  if (is_of_domains) run_times.emplace();
  guests.Start();
  XENOSCOPE_RETURN_IF_ERROR(counters.Enable(true));
  if (run_times) run_times->Begin();
  std::optional<sampler::ChildProcess> command;
  StatLoop loop(options);
  if (!options.command.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(command, sampler::ChildProcess::Start(options.command, {}));
  }
  const auto next = [&]() -> absl::StatusOr<profile::EventTotals> {
    XENOSCOPE_ASSIGN_OR_RETURN(profile::EventTotals totals,
                               counters.Next(By(options), guests.Next()));
    if (run_times) run_times->End();
    totals.seconds = loop.NextStretch();
    if (run_times) {
      Append(run_times->Totals(By(options), {}), totals);
      run_times->BeginNext();
    }
    return totals;
  };
  const auto write = [&]() -> absl::Status {
    XENOSCOPE_ASSIGN_OR_RETURN(profile::EventTotals totals, next());
    return writer.Write(std::move(totals), loop.Elapsed());
  };
  Run run;
  XENOSCOPE_ASSIGN_OR_RETURN(run.interrupted,
                             loop.Run(signals, command, write, [&guests] { guests.KeepAlive(); }));
  if (command) run.exit_status = command->Stop(kCommandTimeoutMs).status;
  XENOSCOPE_ASSIGN_OR_RETURN(run.totals, next());
  run.elapsed = loop.Elapsed();
  return run;
}

// Counts by counters of this Linux, and of guests, whose agents get the events as texts.
Outcome CountByCounters(const StatOptions& options, const std::vector<EventSpec>& events,
                        const std::vector<std::string>& texts, std::optional<DomainId> domain) {
  StatWriter writer(options, /*of_domains=*/false);
  recording::RecordingInfo host;
  if (domain && CountsSystem(options)) host.domains = StatRunTimes().Domains();
  writer.domain_name = [&host](DomainId id) { return host.NameOf(id); };
  auto guests = StatGuests::Open(options.active, host, texts, events.size());
  if (!guests.ok()) return guests.status();
  std::vector<profile::EventTotals> runs;
  Run last;
  while (runs.size() < options.runs && !last.interrupted) {
    auto run = CountRun(options, events, domain, *guests, writer);
    if (!run.ok()) return run.status();
    last = *std::move(run);
    runs.push_back(std::move(last.totals));
  }
  writer.SetRuns(static_cast<uint32_t>(runs.size()));
  Outcome outcome(writer.Write(MeanOfRuns(runs),
                               options.interval_ms ? std::optional(last.elapsed) : std::nullopt));
  outcome.exit_status = last.exit_status;
  return outcome;
}

// Counts by samples and by what Xen counts.
Outcome CountBySamples(const StatOptions& options, const std::vector<EventSpec>& events) {
  StatSampling request;
  request.events = events;
  request.by = By(options);
  request.domains = options.domains;
  request.command = options.command;
  if (options.duration_s > 0) request.duration = FromSeconds(options.duration_s);
  if (options.interval_ms) request.interval = FromSeconds(*options.interval_ms / 1000);
  StatWriter writer(options, /*of_domains=*/true);
  const auto write = [&writer, &options](SampledTotals sampled) {
    writer.domain_name = [&sampled](DomainId id) { return sampled.info.NameOf(id); };
    return writer.Write(std::move(sampled.totals),
                        options.interval_ms ? std::optional(sampled.elapsed) : std::nullopt);
  };
  request.on_interval = write;
  absl::StatusOr<SampledTotals> sampled = SampleTotals(request);
  if (!sampled.ok()) return sampled.status();
  for (const std::string& note : sampled->notes) fmt::print(stderr, "note: {}\n", note);
  const int exit_status = sampled->exit_status;
  Outcome outcome(write(*std::move(sampled)));
  outcome.exit_status = exit_status;
  return outcome;
}

// Returns the events of a user who gives none, as after -e.
std::string DefaultEvents(const StatOptions& options, bool sampled) {
  if (sampled) return "{cycles,instructions}";
  const std::string time = CountsSystem(options) ? "cpu-clock" : "task-clock";
  return time +
         ",context-switches,cpu-migrations,page-faults,{cycles,instructions},"
         "{branches,branch-misses}";
}

// Returns why samples cannot give such intervals.
absl::Status CheckSampledInterval(const StatOptions& options) {
  if (options.per == "pcpu") {
    return InvalidError(
        "-I cannot be given with --per pcpu, since only the whole trace places samples on pCPUs: "
        "run stat several times");
  }
  constexpr auto kMinMs = static_cast<double>(StatSampling::kMinInterval.count());
  if (*options.interval_ms >= kMinMs) return absl::OkStatus();
  return InvalidError(
      "-I {} is too short, since domains of Xen are counted by samples, which are collected every "
      "50 ms: give -I {} or more",
      *options.interval_ms, kMinMs);
}

Outcome RunStat(const StatOptions& options, std::vector<EventSpec> events) {
  const bool has_xen = sampler::MayBeDom0();
  const bool sampled =
      options.source == "xenoprof" ||
      (options.source == "auto" && has_xen && CountsSystem(options) && options.active.empty() &&
       options.per != "cpu" && (options.per == "pcpu" || events.empty() || !AreOfLinux(events)));
  const bool is_of_xen = options.per == "domain" || options.per == "vcpu" || options.per == "pcpu";
  if (!has_xen && is_of_xen) {
    return PreconditionError(
        "--per {} needs dom0 of a Xen host, and this machine is none: give --per cpu or --per "
        "total",
        options.per);
  }
  if (!has_xen && !options.active.empty()) {
    return PreconditionError("--active needs dom0 of a Xen host, and this machine is none");
  }
  if (sampled && options.runs > 1) {
    return InvalidError(
        "-r needs counters, and domains of Xen are counted by samples: run stat "
        "several times");
  }
  if (sampled && options.interval_ms) XENOSCOPE_RETURN_IF_ERROR(CheckSampledInterval(options));
  std::vector<std::string> texts = options.events;
  if (events.empty()) {
    texts = {DefaultEvents(options, sampled)};
    events = *sampler::ParseEventSpecs(texts);
  }
  for (const EventSpec& event : events) {
    if (!sampled || !AreOfLinux({event})) continue;
    if (options.per == "pcpu") {
      return InvalidError("event {} is Linux's own, which has no pCPUs: give --per cpu",
                          event.name);
    }
    return InvalidError(
        "event {} is Linux's own, and the others are counted by samples of all domains: count it "
        "alone, or give --source perf to count dom0 only",
        event.name);
  }
  const std::optional<DomainId> domain = has_xen ? std::optional(kDom0) : std::nullopt;
  if (sampled) {
    Outcome outcome = CountBySamples(options, events);
    const bool is_of_host =
        (absl::IsUnimplemented(outcome.status) || absl::IsFailedPrecondition(outcome.status)) &&
        options.per != "pcpu";
    if (!is_of_host || options.source != "auto" || !options.domains.empty()) return outcome;
    fmt::print(stderr, "note: Linux's counters count dom0 alone, since {}\n",
               Message(outcome.status));
  }
  if (!options.domains.empty()) {
    return InvalidError(
        "-d needs samples of Xen's domains (--source xenoprof); Linux's counters are "
        "of this domain alone, and of guests with agents (--active)");
  }
  return CountByCounters(options, events, texts, domain);
}

std::vector<EventSpec> Check(const StatOptions& options) {
  auto events = sampler::ParseEventSpecs(options.events);
  if (!events.ok()) ThrowUsageError("-e", std::string(Message(events.status())));
  for (const EventSpec& event : *events) {
    if (options.source == "perf" && (event.period || event.hz)) {
      ThrowUsageError("-e", "counters have no period; leave it out");
    }
  }
  if (!CountsSystem(options) && options.command.empty()) {
    ThrowUsageError("give a command to count, or -a for all of the system");
  }
  if (options.runs > 1 && options.command.empty()) {
    ThrowUsageError("--repeat", "needs a command to run");
  }
  if (!CountsSystem(options) && options.source == "xenoprof") {
    ThrowUsageError("--source", "xenoprof counts domains, not a command alone: give -a, too");
  }
  const bool by_counters = options.source != "xenoprof" && options.domains.empty();
  const bool per_processor = options.per == "cpu" || options.per == "pcpu";
  if (!options.active.empty() && (!by_counters || per_processor)) {
    ThrowUsageError("--active",
                    "reads counters, and those of whole domains: leave out --source xenoprof, "
                    "--domain, --per cpu and --per pcpu");
  }
  if (options.per == "pcpu" && (options.source == "perf" || !options.domains.empty())) {
    ThrowUsageError("--per", "pcpu counts all domains by samples: leave out --source and --domain");
  }
  return *std::move(events);
}

}  // namespace

void AddStat(Command program, CommandAction& run) {
  Command command = program.AddSubcommand(
      "stat", "Count events of a command, of this Linux, or of Xen's domains and vCPUs");
  auto options = std::make_shared<StatOptions>();
  command
      .AddOption("-e,--event", options->events,
                 "Events, as in record: A,B or {A,B}, which are counted at the same time. A period "
                 "only counts for samples. May be repeated. Default: time, switches, faults, "
                 "cycles, instructions, branches; of domains {cycles,instructions}")
      .ValueName("EVENT[:ukh][:PERIOD]")
      .Repeatable();
  command.AddFlag("-a,--all", options->all,
                  "Count all of the system while the command runs; on Xen, all domains");
  command
      .AddOption(
          "--per", options->per,
          "Totals of all of the system, of each domain, of each vCPU, or of each pCPU of the host; "
          "cpu: of each CPU of this Linux")
      .OneOf({"total", "domain", "vcpu", "pcpu", "cpu"})
      .ShowDefault();
  command.AddOption("-d,--domain", options->domains, "Only these domains of Xen, by name or number")
      .SplitAt(',')
      .Repeatable();
  command
      .AddOption("--active", options->active,
                 "Also read the counters of these guests, by name or number, which run `xenoscope "
                 "agent`: exact counts of what their kernels and processes do. May be repeated")
      .SplitAt(',')
      .ValueName("DOMAIN,...")
      .Repeatable();
  command
      .AddOption(
          "-I,--interval", options->interval_ms,
          "Print the counts of each so many milliseconds; by samples these are at least 100, "
          "and totals of vCPUs or domains")
      .Range(1.0, 1e9)
      .ValueName("MS");
  command
      .AddOption("-r,--repeat", options->runs,
                 "Run the command so many times; show means with their 95 % intervals (counters "
                 "only)")
      .Range(1, 1'000'000)
      .ValueName("N")
      .Excludes("--interval");
  command.AddOption("--duration", options->duration_s, "Stop after this many seconds")
      .Range(kMinStatSeconds, kMaxStatSeconds)
      .ValueName("SECONDS");
  command
      .AddOption("--source", options->source,
                 "perf: Linux's counters, exact; xenoprof: samples of all domains, with 95 % "
                 "intervals; auto: xenoprof for hardware events of all of a Xen host, else perf")
      .OneOf({"auto", "perf", "xenoprof"})
      .ShowDefault();
  command.AddOption("--format", options->format, "text; csv; json: with -I, one object a line")
      .OneOf({"text", "csv", "json"})
      .ShowDefault();
  command.AddOption("-o,--output", options->output, "Write to this file");
  command.AddOption("COMMAND", options->command,
                    "Command to count; stat exits with its status. Default: count until Ctrl-C or "
                    "--duration");
  command.SetFooter(
      "Example:\n"
      "  xenoscope stat -- gzip -k big\n"
      "  xenoscope stat -e '{cycles,instructions},page-faults' -- gzip -k big\n"
      "  xenoscope stat -r 10 -e page-faults,task-clock -- make -s\n"
      "  xenoscope stat -a -I 1000\n"
      "  xenoscope stat --per domain -I 1000 --duration 60 --format csv -o domains.csv\n"
      "  xenoscope stat --active web1,db1 -e 'page-faults,{cycles,instructions}'\n"
      "  xenoscope stat --per vcpu -e cycles,instructions --duration 10 --format csv");
  command.SetCallback([&run, options] {
    run = [options, events = Check(*options)] { return RunStat(*options, events); };
  });
}

}  // namespace xenoscope::cli
