// xenoscope report: which functions of which domain the time went to.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/instant.h"
#include "cli/output.h"
#include "cli/recorded_processes.h"
#include "cli/recorded_profile.h"
#include "cli/recorded_samples.h"
#include "cli/symbol_options.h"
#include "cli/trace_input.h"
#include "correlate/profile.h"
#include "recording/recording.h"
#include "report/changes.h"
#include "report/profile_view.h"
#include "report/table_json.h"
#include "report/terminal.h"
#include "trace/dialect.h"
#include "trace/probe.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using recording::Recording;
using recording::RecordingInfo;

constexpr size_t kDefaultLimit = 20;  // rows of a domain, in text

struct Options {
  std::string input = "xenoscope.xeno";
  std::string source = "auto";
  std::string by = "domain,mode,function";
  std::vector<std::string> domains;
  std::string event;
  std::optional<Instant> from;
  std::optional<Instant> to;
  std::string sort = "share";
  std::optional<size_t> limit;
  double threshold = 0;  // percent
  std::string format = "text";
  SymbolOptions symbols;
};

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

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "xenoscope: {}\n", warning);
}

// The part of the recording that was asked for.
void Narrow(const Options& options, Clock clock, Tsc begin, ProfileInput& profiled) {
  // Times are those of dump, where there is a trace.
  const Tsc zero = profiled.trace == nullptr
                       ? begin
                       : trace::ProbeTrace(*profiled.trace).first_tsc.value_or(begin);
  if (options.from) profiled.within.begin = options.from->After(zero, clock);
  if (options.to) profiled.within.end = options.to->After(zero, clock);
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
  XENOSCOPE_ASSIGN_OR_RETURN(out.by, report::ParseDimensions(options.by));
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
  out.changes = report::ChangeLines(info);
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
  const trace::Dialect dialect =
      input ? CompleteDialect(input->dialect, input->trace) : trace::Dialect();
  ProfileInput profiled{input ? &input->trace : nullptr, dialect, symbols.resolver.get()};
  Narrow(options, out.clock, info.started, profiled);
  if (from_trace) {
    XENOSCOPE_RETURN_IF_ERROR(ProfileTrace(profiled, out));
  } else {
    SampleSelection samples;
    XENOSCOPE_ASSIGN_OR_RETURN(samples.event, ChooseEvent(*recording, options.event));
    XENOSCOPE_RETURN_IF_ERROR(ProfileRecorded(profiled, *recording, samples, processes, out));
  }
  Warn(symbols.resolver->Misfits());

  if (options.format == "json") return WriteStdout(report::Dump(ProfileJson(out, selection)));
  if (options.format == "csv") return WriteStdout(ProfileCsv(out, selection));
  return WriteStdout(ProfileText(out, selection, report::StdoutStyle()));
}

void Check(const Options& options) {
  const auto by = report::ParseDimensions(options.by);
  if (!by.ok()) throw CLI::ValidationError("--by", std::string(Message(by.status())));
  if (!report::IsSortKey(*by, options.sort)) {
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
  command->add_option_function<std::string>(
      "--from",
      [options](const std::string& text) { options->from = ParseInstant("--from", text); },
      "only samples from here on: seconds after the beginning, or @TSC, as dump has them");
  command->add_option_function<std::string>(
      "--to", [options](const std::string& text) { options->to = ParseInstant("--to", text); },
      "only samples before this");
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
