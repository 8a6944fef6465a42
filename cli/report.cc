// xenoscope report: which functions of which domain the time went to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/heap.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/profile_source.h"
#include "cli/report_explain.h"
#include "cli/report_findings.h"
#include "cli/report_origins.h"
#include "cli/report_with_trace.h"
#include "cli/store_page.h"
#include "cli/store_source.h"
#include "cli/summary_of_store.h"
#include "correlate/profile.h"
#include "profile/pipeline_options.h"
#include "report/findings/findings_view.h"
#include "report/profile/column_help.h"
#include "report/profile/profile_format.h"
#include "report/profile/profile_view.h"
#include "report/profile/row_filter.h"
#include "report/table/table_json.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;

constexpr size_t kDefaultLimit = 20;  // rows of a domain, in text

struct ReportOptions {
  ProfileOptions profile;
  StoreOptions store;
  std::string by;  // empty: those of the format
  std::vector<std::string> domains;
  std::vector<report::RowFilter> filters;
  std::string sort;  // empty: the total, if there are any, else the share
  std::optional<size_t> limit;
  double threshold = 0;  // percent
  std::string format = "text";
  std::string weight;  // empty: cycles, where the event counts time
  std::string tagroot;
  std::string output;  // empty: standard output
  bool help_columns = false;
  bool origins = false;
  bool findings = false;  // instead of the profile
  bool inlined = true;    // frames of inlined functions in stacks
  bool fold_recursion = false;
  bool children = false;  // self and total of functions
  std::string explain;    // a function; empty: none
};

std::string By(const ReportOptions& options) {
  if (!options.by.empty()) return options.by;
  return std::string(report::FindProfileFormat(options.format)->by);
}

std::string SortKey(const ReportOptions& options) {
  if (!options.sort.empty()) return options.sort;
  return options.children ? "total_share" : "share";
}

report::ProfileFormatOptions FormatOptionsOf(const ReportOptions& options,
                                             const report::TextStyle& style) {
  report::ProfileFormatOptions format;
  format.style = style;
  format.title = options.profile.input;
  report::ProfileSelection& selection = format.selection;
  selection.sort = SortKey(options);
  selection.threshold = options.threshold / 100;
  selection.limit = options.limit.value_or(options.format == "text" ? kDefaultLimit : 0);
  return format;
}

// The same for a report of a recording, with the domains that are chosen.
absl::StatusOr<report::ProfileFormatOptions> FormatOptionsOf(const ReportOptions& options,
                                                             const ProfileSource& source,
                                                             const report::TextStyle& style) {
  report::ProfileFormatOptions format = FormatOptionsOf(options, style);
  XENOSCOPE_ASSIGN_OR_RETURN(format.selection.domains,
                             ChooseDomains(source.info(), options.domains));
  return format;
}

// Whether the report begins with findings: text does where nothing was chosen that a user looks
// for, programs always get them.
bool HasFindings(const ReportOptions& options) {
  if (options.findings || options.format == "json") return true;
  return options.format == "text" && options.by.empty() && options.filters.empty();
}

// Whether the profile has subtotals: text is a tree of them, and findings look at them.
bool HasSubtotals(const ReportOptions& options, const std::vector<Dimension>& by) {
  const bool wanted =
      options.format == "text" || options.format == report::kHtml || HasFindings(options);
  return wanted && options.filters.empty() && by.size() > 2 && by.front() == Dimension::kDomain;
}

// Whether it has those of chosen rows: text shows them, and the page the domains.
bool HasChosenSubtotals(const ReportOptions& options, const std::vector<Dimension>& by) {
  if (options.filters.empty() || !report::CanChooseEarly(options.filters)) return false;
  return options.format == "text" ||
         (options.format == report::kHtml && by.front() == Dimension::kDomain);
}

// Makes the profile, and its findings.
absl::Status MakeProfile(const ProfileSource& source, const ReportOptions& options,
                         profile::ProfileColumns columns, report::ProfileReport& out) {
  if (!HasFindings(options)) return source.Profile(options.profile, std::move(columns), out);
  FindingsPass pass(options.profile,
                    options.findings ? FindingsDetail::kAll : FindingsDetail::kQuick);
  XENOSCOPE_RETURN_IF_ERROR(
      source.Profile(options.profile, std::move(columns), out, pass.observers()));
  pass.AddTo(source, out);
  return absl::OkStatus();
}

// Returns the findings instead of the profile.
absl::StatusOr<std::string> FindingsReport(const ProfileSource& source,
                                           const ReportOptions& options,
                                           const report::TextStyle& style,
                                           report::ProfileReport& out) {
  profile::ProfileColumns columns;
  XENOSCOPE_ASSIGN_OR_RETURN(columns.by, report::ParseDimensions(By(options)));
  columns.with_subtotals = HasSubtotals(options, columns.by);
  XENOSCOPE_ASSIGN_OR_RETURN(const report::ProfileFormatOptions format,
                             FormatOptionsOf(options, source, style));
  XENOSCOPE_RETURN_IF_ERROR(MakeProfile(source, options, std::move(columns), out));
  const std::vector<findings::Finding> found = SelectedFindings(out, format.selection);
  const report::FindingsContext context{out.input, out.clock};
  return options.format == "json" ? report::Dump(report::FindingsJson(found, context))
                                  : report::FindingsText(found, context, style);
}

// The columns of a profile.
struct Columns {
  std::vector<Dimension> frames;  // those of stacks
  std::vector<Dimension> listed;  // those of a table: a domain that is chosen is one, too
};

// Writes a profile, and text before it.
absl::Status WriteProfile(const ReportOptions& options, const Columns& columns,
                          report::ProfileFormatOptions write, report::ProfileReport& out,
                          const std::string& before = "") {
  const report::ProfileFormat& format = *report::FindProfileFormat(options.format);
  if (!report::HasColumn(out, write.selection.sort)) {
    return NotFoundError("there is no column '{}': the recording has no events with such a ratio",
                         write.selection.sort);
  }
  XENOSCOPE_RETURN_IF_ERROR(report::ApplyRowFilters(options.filters, columns.listed, out));
  if (options.format == "text" && !report::CanChooseEarly(options.filters)) {
    out.cautions.emplace_back(
        "There are no subtotals of chosen rows: the stacks of rows are known only when all samples "
        "are added up. The lines of domains are of all their samples.");
  }
  // Columns that only choose rows are not frames.
  if (format.stacks && !format.addresses) out.by = columns.frames;

  const bool weigh_time = options.weight.empty() ? out.is_time : options.weight == "cycles";
  if (weigh_time && !out.is_time) {
    return InvalidError("event {} does not count time: give --weight samples", out.event);
  }
  write.weight = weigh_time ? report::FlameWeight::kCycles : report::FlameWeight::kSamples;
  if (!options.tagroot.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(write.roots, report::ParseDimensions(options.tagroot));
  }
  write.title += ": " + out.event;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string text, format.write(out, write));
  return WriteOutput(options.output, before + text);
}

// Leaves of the frames at each address the function alone, for formats that have addresses.
void LeaveOutInlined(report::ProfileReport& out) {
  out.lines_of = [all = std::move(out.lines_of)](DomainId domain, Mode mode, AddressSpaceId space,
                                                 Address address) {
    profile::CodeLines code = all(domain, mode, space, address);
    if (code.inlined.size() > 1) code.inlined.erase(code.inlined.begin(), code.inlined.end() - 1);
    return code;
  };
}

std::set<DomainId> DomainsOf(const report::ProfileReport& out) {
  std::set<DomainId> domains;
  for (const correlate::ProfileRow& row : out.result.rows) domains.insert(row.domain);
  return domains;
}

absl::Status ProfileReport(const ProfileSource& source, const ReportOptions& options,
                           const report::TextStyle& style) {
  const report::ProfileFormat& format = *report::FindProfileFormat(options.format);
  profile::ProfileColumns columns;
  XENOSCOPE_ASSIGN_OR_RETURN(columns.by, report::ParseDimensions(By(options)));
  columns.by = report::ColumnsFor(format, std::move(columns.by));
  Columns shown{columns.by, {}};
  columns.with_inlined = options.inlined && !format.addresses;
  columns.fold_recursion = options.fold_recursion;
  columns.with_totals = options.children;
  XENOSCOPE_ASSIGN_OR_RETURN(const report::ProfileFormatOptions write,
                             FormatOptionsOf(options, source, style));
  if (!write.selection.domains.empty() && !profile::HasDimension(columns.by, Dimension::kDomain)) {
    columns.by.insert(columns.by.begin(), Dimension::kDomain);
  }
  shown.listed = columns.by;
  report::AddFilterColumns(options.filters, columns.by);
  report::ProfileReport out;
  columns.with_subtotals = HasSubtotals(options, columns.by);
  if (HasChosenSubtotals(options, columns.by)) {
    columns.with_subtotals = true;
    columns.choice = report::ChoiceOf(options.filters, out);
  }
  if (format.timeline) {
    return WriteTimeline(source, options.profile, format, std::move(columns), options.output,
                         write.title, out);
  }
  if (format.name == report::kHtml) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        const std::string page,
        HtmlReport(source, options.profile, std::move(columns), options.filters, write, out));
    return WriteOutput(options.output, page);
  }
  XENOSCOPE_RETURN_IF_ERROR(MakeProfile(source, options, std::move(columns), out));
  WarnOfAbsentDomains(write.selection.domains, DomainsOf(out), "samples");
  if (!options.inlined) LeaveOutInlined(out);
  return WriteProfile(options, shown, write, out);
}

// Returns what a guest's owner first wants to know of what dom0 shares: where the time outside of
// functions went. Nothing where certain columns, or another format, were asked for.
absl::StatusOr<std::string> SharedSummary(const ReportOptions& options,
                                          const report::TextStyle& style) {
  if (!options.store.shared || !options.by.empty() || options.format != "text") return "";
  auto text = StoreSummaryText({.store = options.store,
                                .format = options.format,
                                .sections = {"runstates", "waited_for", "exits", "hypercalls"},
                                .domains = options.domains},
                               style);
  if (absl::IsNotFound(text.status())) return "";  // what follows says what is missing
  XENOSCOPE_RETURN_IF_ERROR(text.status());
  return *text + '\n';
}

// Writes the profile of slices of a store.
absl::Status StoreReport(const ReportOptions& options, const report::TextStyle& style) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<Dimension> by, report::ParseDimensions(By(options)));
  Columns shown{by, {}};
  if (!options.domains.empty() && !profile::HasDimension(by, Dimension::kDomain)) {
    by.insert(by.begin(), Dimension::kDomain);
  }
  shown.listed = by;
  report::AddFilterColumns(options.filters, by);
  report::ProfileReport out;
  StoreOptions store = options.store;
  store.selection.event = options.profile.event;
  if (options.format == report::kHtml) {
    report::ProfileFormatOptions page = FormatOptionsOf(options, style);
    page.title = store.url;
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string text,
                               StorePage(store, by, options.filters, options.domains, page));
    return WriteOutput(options.output, text);
  }
  const bool with_subtotals =
      options.format == "text" && (HasSubtotals(options, by) || HasChosenSubtotals(options, by));
  XENOSCOPE_RETURN_IF_ERROR(
      ProfileOfStore(store, {std::move(by), with_subtotals, options.filters}, out));
  report::ProfileFormatOptions write = FormatOptionsOf(options, style);
  write.title = options.store.url;
  XENOSCOPE_ASSIGN_OR_RETURN(write.selection.domains, ChooseStoredDomains(out, options.domains));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string summary, SharedSummary(options, style));
  return WriteProfile(options, shown, write, out, summary);
}

absl::Status Report(const ReportOptions& options) {
  if (options.help_columns) return WriteStdout(report::ColumnHelpText());
  TakeMemoryInLargeSteps();
  const report::TextStyle style =
      options.output.empty() ? report::StdoutStyle() : report::TextStyle();
  if (!options.store.url.empty()) return StoreReport(options, style);
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  report::ProfileReport out;
  if (options.findings) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string text, FindingsReport(source, options, style, out));
    return WriteOutput(options.output, text);
  }
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
  return ProfileReport(source, options, style);
}

// Whether the report has a column for each of several events.
bool ShowsSideBySide(const ReportOptions& options) {
  return report::FindProfileFormat(options.format)->ratios && !options.origins &&
         !options.children && options.explain.empty();
}

// Whether the report has the callers of functions.
bool ShowsCallChains(const ReportOptions& options) {
  if (options.findings || options.origins || !options.explain.empty()) return false;
  const report::ProfileFormat& format = *report::FindProfileFormat(options.format);
  if (options.children || format.timeline || format.name == report::kHtml) {
    return true;
  }
  const auto by = report::ParseDimensions(By(options));
  return by.ok() && profile::HasDimension(report::ColumnsFor(format, *by), Dimension::kStack);
}

// The frames at the root of pprof's stacks are columns of the profile, and not of its stacks.
void CheckTagroot(const ReportOptions& options) {
  if (options.tagroot.empty()) return;
  if (options.format != report::kPprof) {
    ThrowUsageError("--tagroot", "goes with --format pprof only");
  }
  const auto roots = report::ParseDimensions(options.tagroot);
  if (!roots.ok()) ThrowUsageError("--tagroot", std::string(Message(roots.status())));
  const auto by = report::ParseDimensions(By(options));
  if (!by.ok()) return;
  for (const Dimension root : *roots) {
    if (root == Dimension::kFunction || root == Dimension::kStack || root == Dimension::kAddress ||
        !profile::HasDimension(*by, root)) {
      ThrowUsageError("--tagroot",
                      fmt::format("{} is no label: the columns are {}; --by adds others",
                                  report::ToString(root), By(options)));
    }
  }
}

// Totals are of functions, images and modes: what each frame of a call chain has.
void CheckChildren(const ReportOptions& options, std::vector<Dimension> by) {
  if (!options.children) {
    if (options.sort.starts_with("total_")) {
      ThrowUsageError("--sort", fmt::format("{} is a column of --children only", options.sort));
    }
    return;
  }
  if (!report::FindProfileFormat(options.format)->ratios) {
    ThrowUsageError("--children", "goes with --format text, csv or json only; others have stacks");
  }
  if (!options.store.url.empty()) {
    ThrowUsageError("--children", "needs a recording: a store has no call chains");
  }
  report::AddFilterColumns(options.filters, by);
  for (const Dimension dimension : {Dimension::kStack, Dimension::kAddress, Dimension::kPage,
                                    Dimension::kLine, Dimension::kPlacing}) {
    if (!profile::HasDimension(by, dimension)) continue;
    ThrowUsageError("--children", fmt::format("does not go with the column {}; leave it out",
                                              report::ToString(dimension)));
  }
  if (!profile::HasDimension(by, Dimension::kFunction) &&
      !profile::HasDimension(by, Dimension::kImage)) {
    ThrowUsageError("--children", "needs the column function or image");
  }
}

void Check(const ReportOptions& options) {
  const report::ProfileFormat& format = *report::FindProfileFormat(options.format);
  CheckStoreOptions(options.store);
  if (!options.store.url.empty() && options.format != "text" && options.format != "csv" &&
      options.format != "json" && options.format != report::kHtml) {
    ThrowUsageError("--from-store", "goes with --format text, csv, json or html only");
  }
  if (!options.store.url.empty() &&
      (options.findings || options.origins || !options.explain.empty() || options.profile.from ||
       options.profile.to)) {
    ThrowUsageError(
        "--from-store",
        "does not go with --findings, --origins, --explain, --from and --to, which need "
        "a recording");
  }
  if (options.origins && options.format != "text" && options.format != "csv" &&
      options.format != "json") {
    ThrowUsageError("--origins", "goes with --format text, csv or json only");
  }
  if (options.findings && options.format != "text" && options.format != "json") {
    ThrowUsageError("--findings", "goes with --format text or json only");
  }
  if (!options.explain.empty() && options.format != "text" && options.format != "json") {
    ThrowUsageError("--explain", "goes with --format text or json only");
  }
  const auto by = report::ParseDimensions(By(options));
  if (!by.ok()) ThrowUsageError("--by", std::string(Message(by.status())));
  CheckChildren(options, *by);
  CheckTagroot(options);
  if (!report::IsSortKey(*by, SortKey(options))) {
    ThrowUsageError("--sort",
                    fmt::format("there is no column '{}'; choose from {},samples,share,cycles",
                                options.sort, By(options)));
  }
  if (!options.filters.empty() && format.timeline) {
    ThrowUsageError(
        "--where",
        fmt::format("cannot go with --format {}, which contains all rows; filter in its viewer",
                    format.name));
  }
  if (format.stacks && (options.limit || options.threshold > 0)) {
    ThrowUsageError("--format",
                    fmt::format("--format {} contains all rows; leave out --limit and --threshold",
                                format.name));
  }
  if (format.binary && options.output.empty() && StdoutIsTerminal()) {
    ThrowUsageError("--format", fmt::format("{} is not text: write it with -o FILE", format.name));
  }
}

constexpr const char* kReportExamples =
    "Example:\n"
    "  xenoscope report web.xeno\n"
    "  xenoscope report web.xeno --findings\n"
    "  xenoscope report web.xeno --by domain,exit,function --limit 10\n"
    "  xenoscope report web.xeno --by waiting,vcpu,function --where 'waiting=*d1v0*'\n"
    "  xenoscope report web.xeno --domain web1 --by wakeup,function\n"
    "  xenoscope report web.xeno --by behalf,process,function\n"
    "  xenoscope report web.xeno --children --by domain,function\n"
    "  xenoscope report web.xeno --format svg -o web.svg\n"
    "  xenoscope report web.xeno --format html -o web.html\n"
    "  xenoscope report web.xeno --format pprof -o web.pb.gz && pprof -top web.pb.gz\n"
    "  xenoscope report web.xeno --format firefox -o web.json   # profiler.firefox.com opens it\n"
    "  xenoscope report web.xeno --by domain,function --where mode=xen --where exit=VMEXIT_*\n"
    "  xenoscope report web.xeno -e '{cycles,instructions}' --by domain,exit --sort ipc\n"
    "  xenoscope report web.xeno --explain svm_vmexit_handler\n"
    "  xenoscope report --from-store sqlite:fleet.db --host web1,web2 --since 24h\n"
    "  xenoscope report --shared --since 1h                     # in a guest, after record "
    "--share\n"
    "  xenoscope report web.xeno --domain web1 --kernel web1=System.map --format json";

// ReportOptions that choose samples and rows.
void AddSelectionOptions(Command command, ReportOptions& options) {
  command
      .AddOption("RECORDING", options.profile.input,
                 "Recording of `xenoscope record`, or a bare trace")
      .ShowDefault();
  command
      .AddOption("--source", options.profile.source,
                 "recorded: recorded samples; trace: VM exits in the trace (HVM guests only); "
                 "auto: recorded samples if there are any")
      .OneOf({"auto", "recorded", "trace"})
      .ShowDefault();
  command
      .AddOption("--by", options.by,
                 fmt::format("Columns, with commas between them: any of {}; default: "
                             "domain,mode,function, and more for some formats. Text shows two or "
                             "more columns after domain as a tree with subtotals",
                             fmt::join(report::DimensionNames(), ", ")))
      .Suggest("COLUMN,...", report::DimensionNames());
  command
      .AddOption("-d,--domain", options.domains,
                 "Only these domains, by name or number; shares stay parts of all time")
      .ValueName(kDomainValue)
      .SplitAt(',')
      .OneWordEach();
  command
      .AddWordsOption(
          "-w,--where",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              auto filter = report::ParseRowFilter(text);
              if (!filter.ok()) {
                ThrowUsageError("--where", std::string(Message(filter.status())));
              }
              options.filters.push_back(*std::move(filter));
            }
          },
          "Only rows with one of these texts in a column: exit=VMEXIT_CPUID,VMEXIT_IO*. May be "
          "repeated: all must match. Shares stay parts of all time")
      .OneWordEach()
      .Suggest(kFilterValue, report::DimensionNames());
  command
      .AddOption("-e,--event", options.profile.event,
                 std::string(kEventHelp) +
                     ". {A,B,...}: several side by side, with their ratios (text, csv, json); the "
                     "first one's shares are estimated. Default: those that have a ratio with the "
                     "first, too")
      .ValueName(kEventValue);
  command.AddWordOption(
      "--from",
      [&options](const std::string& text) { options.profile.from = ParseInstant("--from", text); },
      std::string("Only samples from this time on: ") + kInstantHelp);
  command.AddWordOption(
      "--to",
      [&options](const std::string& text) { options.profile.to = ParseInstant("--to", text); },
      "Only samples before this time, as --from");
}

// ReportOptions of the order, number and format of rows.
void AddOutputOptions(Command command, ReportOptions& options) {
  command
      .AddOption("-s,--sort", options.sort,
                 "Sort by this column; default: share, or total_share with --children")
      .Suggest("COLUMN", report::SortKeys());
  command.AddOption(
      "-n,--limit", options.limit,
      fmt::format("Maximum of rows of each domain; 0: all; default: 20, or all in csv "
                  "and json. Unless it is 0, text shows the first {} domains and the "
                  "sum of the others",
                  report::kMostDomains));
  command.AddOption("-t,--threshold", options.threshold, "Minimum share of a row, in percent")
      .Percent();
  std::vector<std::string> formats;
  std::string about;
  for (const report::ProfileFormat& format : report::ProfileFormats()) {
    formats.emplace_back(format.name);
    about += fmt::format("{}{} ({})", about.empty() ? "" : ", ", format.name, format.about);
  }
  command.AddOption("--format", options.format, about).OneOf(formats).ShowDefault();
  command
      .AddOption("--weight", options.weight,
                 "Weight of frames in folded and svg: cycles or samples; default: cycles if the "
                 "event counts time")
      .OneOf({"cycles", "samples"});
  command
      .AddOption(
          "--tagroot", options.tagroot,
          "pprof: columns (domain,mode) that are frames at the root of all stacks, as `pprof "
          "-tagroot` makes them of labels")
      .Suggest("COLUMN,...", report::DimensionNames());
  command.AddOption("-o,--output", options.output, "Write to this file");
  command.AddFlag("--inline,!--no-inline", options.inlined,
                  "Show inlined functions in stacks as \"name (inlined)\" (--by stack, folded, "
                  "svg, pprof, html, perfetto, firefox; pprof names them as the compiler "
                  "does); on by default");
  command.AddFlag("--fold-recursion", options.fold_recursion,
                  "Show a function that calls itself as one frame of stacks");
  command.AddFlag("--children,!--no-children", options.children,
                  "Show self and total of functions: samples in the function itself, and those in "
                  "it or what it called, each with its interval (text, csv, json); off by default, "
                  "as call chains take time to unwind");
}

// ReportOptions that show something instead of the profile.
void AddOtherViews(Command command, ReportOptions& options) {
  command.AddFlag("--help-columns", options.help_columns, "Describe all columns");
  Option findings = command.AddFlag("--findings", options.findings,
                                    "Instead of the profile, show what stands out: at most 10 "
                                    "statements, by the time that they concern, with what usually "
                                    "causes them and the commands that show them");
  for (const char* const of_rows :
       {"--by", "--where", "--sort", "--limit", "--threshold", "--weight", "--children"}) {
    findings.Excludes(of_rows);
  }
  Option origins = command.AddFlag("--origins", options.origins,
                                   "Instead of the profile, show the files that its functions and "
                                   "lines come from, and what is missing");
  for (const char* const of_rows : {"--by", "--domain", "--where", "--sort", "--limit",
                                    "--threshold", "--weight", "--findings", "--children"}) {
    origins.Excludes(of_rows);
  }
  Option explain = command
                       .AddOption("--explain", options.explain,
                                  "Instead of the profile, show for functions of this name or "
                                  "shell pattern how their samples were placed, where their cycles "
                                  "come from and what would narrow their intervals")
                       .ValueText("FUNCTION");
  for (const char* const of_rows : {"--by", "--where", "--sort", "--limit", "--threshold",
                                    "--weight", "--origins", "--findings", "--children"}) {
    explain.Excludes(of_rows);
  }
}

}  // namespace

void AddReport(Command program, CommandAction& run) {
  auto options = std::make_shared<ReportOptions>();
  Command command = program.AddSubcommand(
      "report", "Show samples, time and its uncertainty by domain, mode, function, VM exit, ...");
  AddSelectionOptions(command, *options);
  AddOutputOptions(command, *options);
  AddOtherViews(command, *options);
  AddStoreOptions(command, options->store);
  AddSymbolOptions(command, options->profile.symbols);
  command.SetFooter(kReportExamples);
  command.SetCallback([options, &run] {
    Check(*options);
    options->profile.side_by_side = ShowsSideBySide(*options);
    options->profile.call_chains = ShowsCallChains(*options);
    run = [options] { return Report(*options); };
  });
}

}  // namespace xenoscope::cli
