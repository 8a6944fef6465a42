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
#include "cli/options.h"
#include "cli/output.h"
#include "cli/profile_source.h"
#include "cli/report_explain.h"
#include "cli/report_origins.h"
#include "cli/report_with_trace.h"
#include "correlate/profile.h"
#include "profile/pipeline_options.h"
#include "report/profile/column_help.h"
#include "report/profile/profile_format.h"
#include "report/profile/profile_view.h"
#include "report/profile/row_filter.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;

constexpr size_t kDefaultLimit = 20;  // rows of a domain, in text

struct Options {
  ProfileOptions profile;
  std::string by;  // empty: those of the format
  std::vector<std::string> domains;
  std::vector<report::RowFilter> filters;
  std::string sort = "share";
  std::optional<size_t> limit;
  double threshold = 0;  // percent
  std::string format = "text";
  std::string weight;  // empty: cycles, where the event counts time
  std::string output;  // empty: standard output
  bool help_columns = false;
  bool origins = false;
  bool inlined = true;  // frames of inlined functions in stacks
  std::string explain;  // a function; empty: none
};

std::string By(const Options& options) {
  if (!options.by.empty()) return options.by;
  return std::string(report::FindProfileFormat(options.format)->by);
}

// The columns that choose rows, where they are not among those that are shown.
void AddWheres(const Options& options, std::vector<Dimension>& by) {
  for (const report::RowFilter& filter : options.filters) {
    if (!profile::HasDimension(by, filter.dimension)) by.push_back(filter.dimension);
  }
}

absl::Status Report(const Options& options) {
  if (options.help_columns) return WriteStdout(report::ColumnHelpText());
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  const report::TextStyle style =
      options.output.empty() ? report::StdoutStyle() : report::TextStyle();
  report::ProfileReport out;
  if (options.origins) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string text,
                               OriginsReport(source, options.profile, options.format, style, out));
    return WriteOutput(options.output, text);
  }
  if (!options.explain.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> domains,
                               ChooseDomains(source.info(), options.domains));
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string text,
                               ExplainReport(source, options.profile, {options.explain, domains},
                                             options.format, style, out));
    return WriteOutput(options.output, text);
  }
  const report::ProfileFormat& format = *report::FindProfileFormat(options.format);
  profile::ProfileColumns columns;
  XENOSCOPE_ASSIGN_OR_RETURN(columns.by, report::ParseDimensions(By(options)));
  columns.by = report::ColumnsFor(format, std::move(columns.by));
  const std::vector<Dimension> asked_for = columns.by;
  columns.with_inlined = options.inlined && !format.addresses;
  report::ProfileFormatOptions write;
  write.style = style;
  report::ProfileSelection& selection = write.selection;
  selection.sort = options.sort;
  selection.threshold = options.threshold / 100;
  selection.limit = options.limit.value_or(options.format == "text" ? kDefaultLimit : 0);
  XENOSCOPE_ASSIGN_OR_RETURN(selection.domains, ChooseDomains(source.info(), options.domains));
  if (!selection.domains.empty() && !profile::HasDimension(columns.by, Dimension::kDomain)) {
    columns.by.insert(columns.by.begin(), Dimension::kDomain);
  }
  AddWheres(options, columns.by);
  write.title = options.profile.input;
  if (format.name == report::kPerfetto) {
    return WritePerfetto(source, options.profile, std::move(columns), options.output, out);
  }
  if (format.name == report::kHtml) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        const std::string page,
        HtmlReport(source, options.profile, std::move(columns), options.filters, write, out));
    return WriteOutput(options.output, page);
  }
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(options.profile, std::move(columns), out));
  report::ApplyRowFilters(options.filters, out);
  // Columns that only choose rows are not frames.
  if (format.stacks && !format.addresses) out.by = asked_for;

  const bool weigh_time = options.weight.empty() ? out.is_time : options.weight == "cycles";
  if (weigh_time && !out.is_time) {
    return InvalidError("{} does not count time: --weight samples", out.event);
  }
  write.weight = weigh_time ? report::FlameWeight::kCycles : report::FlameWeight::kSamples;
  write.title += ": " + out.event;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string text, format.write(out, write));
  return WriteOutput(options.output, text);
}

void Check(const Options& options) {
  const report::ProfileFormat& format = *report::FindProfileFormat(options.format);
  if (options.origins && options.format != "text" && options.format != "csv" &&
      options.format != "json") {
    ThrowUsageError("--origins", "as text, csv or json only");
  }
  if (!options.explain.empty() && options.format != "text" && options.format != "json") {
    ThrowUsageError("--explain", "as text or json only");
  }
  const auto by = report::ParseDimensions(By(options));
  if (!by.ok()) ThrowUsageError("--by", std::string(Message(by.status())));
  if (!report::IsSortKey(*by, options.sort)) {
    ThrowUsageError("--sort", fmt::format("no column {}; choose from {},samples,share,cycles",
                                          options.sort, By(options)));
  }
  if (!options.filters.empty() && format.name == report::kPerfetto) {
    ThrowUsageError("--where",
                    fmt::format("{} shows all; its reader has filters of its own", format.name));
  }
  if (format.stacks && (options.limit || options.threshold > 0)) {
    ThrowUsageError("--format",
                    fmt::format("{} has all rows: neither --limit nor --threshold", format.name));
  }
  if (format.binary && options.output.empty() && StdoutIsTerminal()) {
    ThrowUsageError("--format", fmt::format("{} is no text for a terminal: -o FILE", format.name));
  }
}

}  // namespace

void AddReport(Command program, CommandAction& run) {
  auto options = std::make_shared<Options>();
  Command command = program.AddSubcommand(
      "report", "Samples, time and its uncertainty: by domain, mode, function, VM exit, ...");
  command
      .AddOption("RECORDING", options->profile.input,
                 "what `xenoscope record` wrote, or a bare trace")
      .ShowDefault();
  command
      .AddOption("--source", options->profile.source,
                 "recorded samples; trace: where the VM exits in the trace found HVM guests; "
                 "auto: the recorded ones, where there are any")
      .OneOf({"auto", "recorded", "trace"})
      .ShowDefault();
  command.AddOption("--by", options->by,
                    "columns: any of domain,vcpu,pcpu,mode,exit,subreason,waiting,wakeup, "
                    "process,image,function,line,address,stack,placing; default: domain,mode,"
                    "function, and more for some formats");
  command
      .AddOption("-d,--domain", options->domains,
                 "only these, by name or number; shares stay "
                 "those of all")
      .SplitAt(',');
  command
      .AddWordsOption(
          "-w,--where",
          [options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              auto filter = report::ParseRowFilter(text);
              if (!filter.ok()) {
                ThrowUsageError("--where", std::string(Message(filter.status())));
              }
              options->filters.push_back(*std::move(filter));
            }
          },
          "only rows with these words in a column: exit=VMEXIT_CPUID,VMEXIT_IO*; several: all of "
          "them; shares stay those of all")
      .OneWordEach();
  command.AddOption("-e,--event", options->profile.event,
                    "the event; default: the first that has samples");
  command.AddWordOption(
      "--from",
      [options](const std::string& text) { options->profile.from = ParseInstant("--from", text); },
      "only samples from here on: seconds after the beginning, or @TSC, as dump has them");
  command.AddWordOption(
      "--to",
      [options](const std::string& text) { options->profile.to = ParseInstant("--to", text); },
      "only samples before this");
  command.AddOption("-s,--sort", options->sort, "order by this column").ShowDefault();
  command.AddOption("-n,--limit", options->limit,
                    "rows of each domain; 0: all; default: 20, or all in csv and json");
  command.AddOption("-t,--threshold", options->threshold, "only rows with this share, in percent")
      .Range(0.0, 100.0);
  std::vector<std::string> formats;
  std::string about;
  for (const report::ProfileFormat& format : report::ProfileFormats()) {
    formats.emplace_back(format.name);
    about += fmt::format("{}{} ({})", about.empty() ? "" : ", ", format.name, format.about);
  }
  command.AddOption("--format", options->format, about).OneOf(formats).ShowDefault();
  command
      .AddOption("--weight", options->weight,
                 "what folded and svg count: cycles or samples; default: cycles, where the "
                 "event counts time")
      .OneOf({"cycles", "samples"});
  command.AddOption("-o,--output", options->output, "into this file");
  command.AddFlag("--inline,!--no-inline", options->inlined,
                  "stacks have frames of inlined functions, as \"name (inlined)\": of --by stack, "
                  "folded and svg; pprof always has them");
  command.AddFlag("--help-columns", options->help_columns, "what each column means");
  Option origins =
      command.AddFlag("--origins", options->origins,
                      "not the profile: from which files its functions and lines come, and what "
                      "is missing; of all samples");
  for (const char* const of_rows :
       {"--by", "--domain", "--where", "--sort", "--limit", "--threshold", "--weight"}) {
    origins.Excludes(of_rows);
  }
  Option explain =
      command
          .AddOption(
              "--explain", options->explain,
              "not the profile: of functions of this name, or of names that fit a pattern as in a "
              "shell, how their samples were placed, where their cycles come from and what would "
              "narrow their intervals")
          .ValueText("FUNCTION");
  for (const char* const of_rows :
       {"--by", "--where", "--sort", "--limit", "--threshold", "--weight", "--origins"}) {
    explain.Excludes(of_rows);
  }
  AddSymbolOptions(command, options->profile.symbols);
  command.SetFooter(
      "Example:\n"
      "  xenoscope report web.xeno\n"
      "  xenoscope report web.xeno --by domain,exit,function --limit 10\n"
      "  xenoscope report web.xeno --by waiting,vcpu,function --where 'waiting=*d1v0*'\n"
      "  xenoscope report web.xeno --domain web1 --by wakeup,function\n"
      "  xenoscope report web.xeno --format svg -o web.svg\n"
      "  xenoscope report web.xeno --format html -o web.html\n"
      "  xenoscope report web.xeno --format pprof -o web.pb.gz && pprof -top web.pb.gz\n"
      "  xenoscope report web.xeno --by domain,function --where mode=xen --where exit=VMEXIT_*\n"
      "  xenoscope report web.xeno --explain svm_vmexit_handler\n"
      "  xenoscope report web.xeno --domain web1 --kernel web1=System.map --format json");
  command.SetCallback([options, &run] {
    Check(*options);
    run = [options] { return Report(*options); };
  });
}

}  // namespace xenoscope::cli
