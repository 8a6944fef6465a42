// xenoscope report: which functions of which domain the time went to.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/output.h"
#include "cli/recorded_processes.h"
#include "cli/recorded_samples.h"
#include "cli/symbol_options.h"
#include "cli/trace_input.h"
#include "correlate/exit_samples.h"
#include "correlate/placing.h"
#include "correlate/profile.h"
#include "recording/recording.h"
#include "report/profile_view.h"
#include "report/table_json.h"
#include "report/terminal.h"
#include "trace/dialect.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using recording::Recording;
using recording::RecordingInfo;
using recording::Sample;

// From this version on, until xenoprof's end, Xen on AMD logs stale addresses (method.md §2.2).
constexpr trace::XenVersion kFirstStale = trace::MakeVersion(4, 11);
constexpr size_t kDefaultLimit = 20;  // rows of a domain, in text

struct Options {
  std::string input = "xenoscope.xeno";
  std::string source = "auto";
  std::string by = "domain,mode,function";
  std::vector<std::string> domains;
  std::string event;
  std::string sort = "share";
  std::optional<size_t> limit;
  double threshold = 0;  // percent
  std::string format = "text";
  SymbolOptions symbols;
};

std::vector<std::string> Split(const std::string& list) { return absl::StrSplit(list, ','); }

// What one pass over the samples tells of them.
struct Brackets {
  TscRange all{Tsc{std::numeric_limits<uint64_t>::max()}, Tsc{0}};
  Cycles longest = 0;
};

Brackets Survey(correlate::SampleSource& samples) {
  Brackets brackets;
  while (const std::optional<Sample> sample = samples.Next()) {
    brackets.all.begin = std::min(brackets.all.begin, sample->when.begin);
    brackets.all.end = std::max(brackets.all.end, sample->when.end);
    brackets.longest = std::max(brackets.longest, sample->when.Length());
  }
  return brackets;
}

// The first event of which there is a sample; the first when there is none.
absl::StatusOr<uint16_t> FirstSampled(const Recording& recording) {
  for (size_t i = 0; i < recording.info().events.size(); ++i) {
    const auto event = static_cast<uint16_t>(i);
    XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                               RecordedSamples::Open(recording, event, nullptr));
    if (samples.Next()) return event;
  }
  return 0;
}

absl::StatusOr<uint16_t> ChooseEvent(const Recording& recording, const std::string& name) {
  const RecordingInfo& info = recording.info();
  if (info.events.empty()) return NotFoundError("the recording has no samples: no event");
  std::vector<std::string> names;
  for (size_t i = 0; i < info.events.size(); ++i) {
    if (info.events[i].name == name) return static_cast<uint16_t>(i);
    names.push_back(info.events[i].name);
  }
  if (name.empty()) return FirstSampled(recording);
  return NotFoundError("no event {} in the recording; it has {}", name, fmt::join(names, ", "));
}

// Whether the samples are the trace's own. Errors: that there are none where they were asked for.
absl::StatusOr<bool> FromTrace(const Options& options, const RecordingInfo& info, bool traced) {
  const bool wanted =
      options.source == "trace" || (options.source == "auto" && info.sources.empty());
  if (wanted && !traced) {
    return NotFoundError("{}: recorded without samples and without a trace", options.input);
  }
  if (!wanted && info.sources.empty()) {
    return NotFoundError("{}: no samples were recorded; --source trace takes the trace's own",
                         options.input);
  }
  return wanted;
}

// Whether a sample stands for time: the processor's cycles, or the timer that stood in for them.
bool CountsTime(const recording::EventInfo& event) {
  if (event.clocked_by == "linux") return false;  // its faults and switches
  if (!event.clocked_by.empty() && event.clocked_by != "pmu") return true;
  return event.name.find("cycle") != std::string::npos ||
         event.name.find("cpu_clk") != std::string::npos;
}

std::string EventText(const recording::EventInfo& event) {
  const bool counted =
      event.clocked_by.empty() || event.clocked_by == "pmu" || event.clocked_by == "linux";
  if (counted) return event.name;
  return fmt::format("{} (clocked by {})", event.name, event.clocked_by);
}

trace::Dialect Complete(trace::Dialect known, const trace::TraceFile& trace) {
  if (known.vendor != trace::Vendor::kUnknown) return known;
  trace::DialectEvidence evidence;
  trace::OrderedStream stream = trace.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind == trace::ItemKind::kRecord) evidence.Observe(item->record);
    if (evidence.Enough()) break;
  }
  const trace::Dialect inferred = evidence.Conclude();
  known.vendor = inferred.vendor;
  known.vendor_source = inferred.vendor_source;
  return known;
}

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "xenoscope: {}\n", warning);
}

// Places the samples by the trace, or without one. Fills what the report says of it.
absl::Status PlaceAll(const std::optional<TraceInput>& input, const trace::Dialect& dialect,
                      Cycles longest_bracket, correlate::SampleSource& samples,
                      correlate::Profile& profile, report::ProfileReport& out) {
  if (!input) {
    out.counts = correlate::PlaceWithoutTrace(samples, profile);
    return absl::OkStatus();
  }
  out.vendor = dialect.vendor;
  correlate::PlacingOptions placing;
  placing.sampled = out.sampled;
  placing.longest_bracket = longest_bracket;
  placing.vendor = dialect.vendor;
  if (dialect.vendor == trace::Vendor::kSvm && dialect.before_version > kFirstStale) {
    placing.logged_rip = correlate::LoggedRip::kOfLastEntry;
  }
  correlate::Placer placer(placing, samples, profile);
  trace::OrderedStream stream = input->trace.Stream();
  while (const trace::Item* item = stream.Next()) placer.Take(*item);
  XENOSCOPE_RETURN_IF_ERROR(placer.Finish());
  out.counts = placer.counts();
  return absl::OkStatus();
}

// The profile of samples that were recorded.
absl::Status ProfileRecorded(const Options& options, const Recording& recording,
                             const std::optional<TraceInput>& input, const trace::Dialect& dialect,
                             const RecordedProcesses& processes, Resolver& resolver,
                             report::ProfileReport& out) {
  const RecordingInfo& info = recording.info();
  XENOSCOPE_ASSIGN_OR_RETURN(const uint16_t number, ChooseEvent(recording, options.event));
  XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples survey,
                             RecordedSamples::Open(recording, number, nullptr));
  XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                             RecordedSamples::Open(recording, number, &processes));
  const recording::EventInfo& event = info.events[number];
  out.event = EventText(event);
  out.is_time = CountsTime(event) && !event.waiting;
  if (event.waiting) {
    out.cautions.emplace_back(
        "samples are of vCPUs that were waiting for a pCPU: where they had been preempted, and how "
        "often, not where their time went");
  }
  for (const recording::StreamInfo& stream : info.streams) {
    out.lost_in_buffers += stream.logged.lost;
  }
  const Brackets brackets = Survey(survey);
  out.sampled = info.started < info.stopped ? TscRange{info.started, info.stopped} : brackets.all;
  correlate::Profile profile({out.by, out.is_time, static_cast<double>(event.period)}, resolver);
  if (event.waiting) {  // on no pCPU: the trace has no place for them
    out.counts = correlate::PlaceWithoutTrace(samples, profile);
  } else {
    XENOSCOPE_RETURN_IF_ERROR(PlaceAll(input, dialect, brackets.longest, samples, profile, out));
  }
  out.damaged = samples.Damaged();
  XENOSCOPE_ASSIGN_OR_RETURN(out.result, profile.Finish());
  return absl::OkStatus();
}

// The profile of the samples that the trace itself holds.
absl::Status ProfileTrace(const std::optional<TraceInput>& input, const trace::Dialect& dialect,
                          Resolver& resolver, report::ProfileReport& out) {
  correlate::ExitSamples survey(input->trace, dialect.vendor);
  correlate::ExitSamples samples(input->trace, dialect.vendor);
  out.event = "the trace: VM exits by interrupts of the host";
  const Brackets brackets = Survey(survey);
  out.sampled = survey.traced();
  out.cautions.emplace_back(
      "samples are the addresses at which an interrupt of the host or an NMI took an HVM guest "
      "from "
      "its processor: none is of Xen, of dom0 or of a PV guest");
  out.cautions.emplace_back(
      "they are not random: timers and devices interrupt, so what a guest does in step with those "
      "has too many samples or too few");
  correlate::Profile profile({out.by, out.is_time, /*period=*/0}, resolver);
  XENOSCOPE_RETURN_IF_ERROR(PlaceAll(input, dialect, brackets.longest, samples, profile, out));
  XENOSCOPE_ASSIGN_OR_RETURN(out.result, profile.Finish());
  return absl::OkStatus();
}

absl::Status Report(const Options& options) {
  std::optional<Recording> bare;  // a recording without a trace
  std::optional<TraceInput> input;
  if (auto opened =
          OpenTraceInput({.input = options.input, .clock = {}, .dialect = {}, .tsc_offsets = {}});
      opened.ok()) {
    input = *std::move(opened);
  } else if (!absl::IsNotFound(opened.status()) || !Recording::IsRecording(options.input)) {
    return opened.status();
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(bare, Recording::Open(options.input));
  }
  const std::optional<Recording>& recording = input ? input->recording : bare;
  const RecordingInfo info = recording ? recording->info() : RecordingInfo();
  XENOSCOPE_ASSIGN_OR_RETURN(const bool from_trace, FromTrace(options, info, input.has_value()));

  report::ProfileReport out;
  for (const std::string& name : Split(options.by)) {
    out.by.push_back(*report::DimensionByName(name));
  }
  report::ProfileSelection selection;
  selection.sort = options.sort;
  selection.threshold = options.threshold / 100;
  selection.limit = options.limit.value_or(options.format == "text" ? kDefaultLimit : 0);
  XENOSCOPE_ASSIGN_OR_RETURN(selection.domains,
                             ChooseDomains(recording ? &info : nullptr, options.domains));
  if (!selection.domains.empty() &&
      std::find(out.by.begin(), out.by.end(), Dimension::kDomain) == out.by.end()) {
    out.by.insert(out.by.begin(), Dimension::kDomain);
  }

  XENOSCOPE_ASSIGN_OR_RETURN(const symbolizer::LoadedSymbols symbols,
                             LoadSymbols(options.symbols, recording));

  out.traced = input.has_value();
  if (recording) out.clock = recording->clock();
  out.domain_name = [&info](DomainId domain) {
    const recording::DomainInfo* known = info.Domain(domain);
    return known == nullptr ? std::string() : known->name;
  };
  RecordedProcesses processes;
  if (!from_trace) {
    XENOSCOPE_ASSIGN_OR_RETURN(processes, RecordedProcesses::Read(*recording));
    processes.GiveTo(symbols.resolver->processes());
    if (processes.invalid() > 0) {
      Warn({fmt::format("{}: {} records of processes are damaged, or of a newer version",
                        options.input, processes.invalid())});
    }
  }
  out.process_name = [&processes](ProcessSpace space) { return processes.NameOf(space); };
  const trace::Dialect dialect = input ? Complete(input->dialect, input->trace) : trace::Dialect();
  XENOSCOPE_RETURN_IF_ERROR(from_trace ? ProfileTrace(input, dialect, *symbols.resolver, out)
                                       : ProfileRecorded(options, *recording, input, dialect,
                                                         processes, *symbols.resolver, out));
  Warn(symbols.resolver->Misfits());

  if (options.format == "json") return WriteStdout(report::Dump(ProfileJson(out, selection)));
  if (options.format == "csv") return WriteStdout(ProfileCsv(out, selection));
  return WriteStdout(ProfileText(out, selection, report::StdoutStyle()));
}

void Check(const Options& options) {
  std::vector<Dimension> by;
  for (const std::string& name : Split(options.by)) {
    const auto dimension = report::DimensionByName(name);
    if (!dimension) {
      throw CLI::ValidationError(
          "--by",
          fmt::format(
              "no {}; choose from domain,vcpu,pcpu,mode,exit,process,image,function,address",
              std::string(name)));
    }
    if (std::find(by.begin(), by.end(), *dimension) != by.end()) {
      throw CLI::ValidationError("--by", fmt::format("{} twice", name));
    }
    by.push_back(*dimension);
  }
  if (!report::IsSortKey(by, options.sort)) {
    throw CLI::ValidationError(
        "--sort",
        fmt::format("no column {}; choose from {},samples,share,cycles", options.sort, options.by));
  }
}

}  // namespace

void AddReport(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report", "Samples, time and its uncertainty: by domain, mode, function, VM exit, ...");
  command->add_option("RECORDING", options->input, "what `xenoscope record` wrote, or a bare trace")
      ->capture_default_str();
  command
      ->add_option("--source", options->source,
                   "recorded samples; trace: where the VM exits in the trace found HVM guests; "
                   "auto: the recorded ones, where there are any")
      ->check(CLI::IsMember({"auto", "recorded", "trace"}))
      ->capture_default_str();
  command
      ->add_option("--by", options->by,
                   "columns: any of domain,vcpu,pcpu,mode,exit,process,image,function,address")
      ->capture_default_str();
  command
      ->add_option("-d,--domain", options->domains,
                   "only these, by name or number; shares stay "
                   "those of all")
      ->delimiter(',');
  command->add_option("-e,--event", options->event,
                      "the event; default: the first that has samples");
  command->add_option("-s,--sort", options->sort, "order by this column")->capture_default_str();
  command->add_option("-n,--limit", options->limit,
                      "rows of each domain; 0: all; default: 20, or all in csv and json");
  command->add_option("-t,--threshold", options->threshold, "only rows with this share, in percent")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--format", options->format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  AddSymbolOptions(*command, options->symbols);
  command->footer(
      "Example:\n"
      "  xenoscope report web.xeno\n"
      "  xenoscope report web.xeno --by domain,exit,function --limit 10\n"
      "  xenoscope report web.xeno --domain web1 --kernel web1=System.map --format json");
  command->callback([options, &run] {
    Check(*options);
    run = [options] { return Report(*options); };
  });
}

}  // namespace xenoscope::cli
