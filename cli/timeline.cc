// xenoscope timeline: how figures change over the trace, as tables, points and pictures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/analysis.h"
#include "analysis/scatter/scatter_registry.h"
#include "analysis/series/series_pass.h"
#include "analysis/series/series_registry.h"
#include "analysis/trace_metadata.h"
#include "analysis/trace_pass.h"
#include "base/error.h"
#include "base/spelling.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/instant.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/thread_options.h"
#include "cli/trace_options.h"
#include "report/summary/skew_text.h"
#include "report/table/table_text.h"
#include "report/terminal.h"
#include "report/timeline/plot.h"
#include "report/timeline/plot_axis.h"
#include "report/timeline/plot_build.h"
#include "report/timeline/plot_svg.h"
#include "report/timeline/plot_terminal.h"
#include "report/timeline/scatter_rows.h"
#include "report/timeline/series_rows.h"
#include "report/timeline/vcpu_chart.h"
#include "report/timeline/vcpu_chart_svg.h"
#include "report/timeline/vcpu_chart_terminal.h"

namespace xenoscope::cli {
namespace {

struct TimelineOptions {
  profile::TraceRequest trace;
  std::vector<std::string> series;
  std::string scatter;
  std::string interval;
  std::vector<std::string> domains;
  size_t top = 0;
  unsigned threads = 0;
  std::string format = "text";
  std::string plot;
  bool list = false;
  std::optional<Instant> from;
  std::optional<Instant> to;
};

// Standard output in large pieces.
class BufferedStdout {
 public:
  std::string& text() { return text_; }
  absl::Status FlushIfFull() { return text_.size() < kFull ? absl::OkStatus() : Flush(); }
  absl::Status Flush() {
    absl::Status status = WriteStdout(text_);
    text_.clear();
    return status;
  }

 private:
  static constexpr size_t kFull = size_t{64} << 10;
  std::string text_;
};

// "100ms" in seconds. Throws a usage error.
double ParseInterval(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  double scale = 0;
  if (unit.empty() || unit == "s") scale = 1;
  if (unit == "ms") scale = 1e-3;
  if (unit == "us") scale = 1e-6;
  if (unit == "ns") scale = 1e-9;
  if (error != std::errc() || !(number * scale > 0) || number * scale > 1e9) {
    ThrowUsageError("--interval", text + " is not a time (write 1s, 100ms or 250us)");
  }
  return number * scale;
}

// A round length (1, 2 or 5 times a power of ten) that makes some hundred intervals of the trace.
double RoundInterval(double seconds) {
  const double wanted = std::max(seconds / 150, 1e-6);
  const double power = std::pow(10.0, std::floor(std::log10(wanted)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= wanted) return factor * power;
  }
  return 10 * power;
}

template <typename Infos>
std::vector<std::string> NamesOf(const Infos& infos) {
  std::vector<std::string> names;
  names.reserve(std::size(infos));
  for (const auto& info : infos) names.emplace_back(info.name);
  return names;
}

// The message about a name that is not one of `infos`.
template <typename Infos>
std::string UnknownName(const std::string& name, const Infos& infos) {
  std::vector<std::string_view> names;
  names.reserve(infos.size());
  for (const auto& info : infos) names.push_back(info.name);
  const std::string hint = SpellingHint(name, names);
  return fmt::format("there is no '{}'{}", name,
                     hint.empty() ? "; `xenoscope timeline --list` lists the names" : hint);
}

// "io=0x80" taken apart. Throws a usage error.
std::pair<const analysis::ScatterInfo*, std::optional<uint32_t>> ParseScatter(
    const std::string& text) {
  const size_t equals = text.find('=');
  const analysis::ScatterInfo* info = analysis::FindScatter(text.substr(0, equals));
  if (info == nullptr) {
    ThrowUsageError("--scatter", UnknownName(text.substr(0, equals), analysis::kAllScatters));
  }
  if (equals == std::string::npos) {
    if (!info->needs_parameter) return {info, std::nullopt};
    ThrowUsageError("--scatter", fmt::format("{0}: write {0}={1}", text, info->parameter));
  }
  std::string_view number = std::string_view(text).substr(equals + 1);
  const bool hex = number.starts_with("0x");
  if (hex) number.remove_prefix(2);
  uint32_t parameter = 0;
  const auto [rest, error] =
      std::from_chars(number.data(), number.data() + number.size(), parameter, hex ? 16 : 10);
  if (error != std::errc() || rest != number.data() + number.size() || info->parameter.empty()) {
    ThrowUsageError("--scatter", text + ": not a valid number for this scatterplot");
  }
  return {info, parameter};
}

absl::Status List() {
  std::string text = "Series (--series):\n";
  for (const auto& info : analysis::kAllSeries) {
    fmt::format_to(std::back_inserter(text), "  {:<24} {}\n", info.name, info.about);
  }
  text += "Scatterplots (--scatter):\n";
  for (const auto& info : analysis::kAllScatters) {
    const std::string name = info.parameter.empty() ? std::string(info.name)
                             : info.needs_parameter
                                 ? fmt::format("{}={}", info.name, info.parameter)
                                 : fmt::format("{}[={}]", info.name, info.parameter);
    fmt::format_to(std::back_inserter(text), "  {:<24} {}\n", name, info.about);
  }
  return WriteStdout(text);
}

struct Source {
  profile::TraceInput input;
  analysis::TraceHints hints;
  analysis::DomainFilter filter;
  unsigned threads;

  // Finds the clock and the range, which are known only after a pass.
  [[nodiscard]] absl::StatusOr<analysis::TraceMetadata> Metadata() const {
    const auto nothing = [] { return std::vector<std::unique_ptr<analysis::Analysis>>(); };
    XENOSCOPE_ASSIGN_OR_RETURN(analysis::AnalysisResult result,
                               analysis::AnalyseTrace(input.trace, hints, nothing, threads));
    return std::move(result.metadata);
  }
};

absl::StatusOr<Source> Open(const TimelineOptions& options) {
  const unsigned threads = LimitThreads(options.threads, kAnalysisThreads);
  XENOSCOPE_ASSIGN_OR_RETURN(profile::TraceInput input, OpenTraceInput(options.trace));
  const analysis::TraceHints hints{input.clock, input.dialect};
  analysis::DomainFilter filter;
  XENOSCOPE_ASSIGN_OR_RETURN(filter.only, ChooseDomains(input.info(), options.domains));
  return Source{std::move(input), hints, std::move(filter), threads};
}

// Cells of a picture for a browser.
constexpr size_t kSvgBins = 640;
constexpr size_t kSvgColumns = 320;
constexpr size_t kSvgRows = 160;
// The number of vCPUs in their picture without --top.
constexpr size_t kVcpus = 24;

report::TerminalStyle Terminal() {
  const report::TextStyle style = report::StdoutStyle();
  return {style.width == 0 ? 80 : style.width, report::StdoutRows(), style.colour};
}

// Draws into the file `where`, or in the terminal where it is "-".
template <typename Plot>
absl::Status Draw(const std::string& where, const Plot& plot) {
  if (where == "-") return WriteStdout(report::ToTerminal(plot, Terminal()));
  return WriteFile(where, report::ToSvg(plot));
}

std::string InputName(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().filename().string();
}

absl::StatusOr<Cycles> IntervalLength(std::optional<double> seconds,
                                      const analysis::TraceMetadata& metadata) {
  const double length =
      seconds.value_or(RoundInterval(metadata.clock.Seconds(metadata.range.Length())));
  constexpr double kMaxCycles = 1e18;
  const double wanted = std::min(length * static_cast<double>(metadata.clock.hz), kMaxCycles);
  const auto cycles = std::max<Cycles>(static_cast<Cycles>(std::llround(wanted)), 1);
  if (metadata.range.Length() / cycles < analysis::kMaxIntervals) return cycles;
  return InvalidError("more than {} intervals; choose a longer one", analysis::kMaxIntervals);
}

// Warns of figures for which no events were recorded. Errors (FailedPrecondition): this is so for
// all that are wanted.
absl::Status CheckFigures(const profile::TraceInput& input, std::span<const trace::Figure> wanted) {
  const std::string note = input.MissingFigures(wanted);
  if (note.empty()) return absl::OkStatus();
  const bool any =
      std::ranges::any_of(wanted, [&input](trace::Figure figure) { return input.Has(figure); });
  if (!any) return PreconditionError("{}", note);
  fmt::print(stderr, "xenoscope: {}\n", note);
  return absl::OkStatus();
}

// Says on stderr what of the trace could not be read, and which clocks differ.
void WarnOfTrace(const analysis::TraceMetadata& metadata) {
  WarnOfUnread(metadata.unread);
  if (metadata.skews.empty()) return;
  fmt::print(stderr, "xenoscope: {}\n", report::SkewNote(metadata.skews, metadata.clock));
}

absl::Status ShowSeries(const TimelineOptions& options,
                        const std::vector<const analysis::SeriesInfo*>& infos,
                        std::optional<double> interval_seconds) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Source source, Open(options));
  std::vector<trace::Figure> figures;
  figures.reserve(infos.size());
  for (const analysis::SeriesInfo* info : infos) figures.push_back(info->figure);
  XENOSCOPE_RETURN_IF_ERROR(CheckFigures(source.input, figures));
  constexpr size_t kTextLines = 10;
  const bool draw = !options.plot.empty();
  size_t most = options.top;
  if (most == 0 && options.format == "text") most = kTextLines;
  if (draw) most = most == 0 ? report::kPlotLines : std::min(most, report::kPlotLines);
  const bool terminal = options.plot == "-";
  const size_t bins = terminal ? report::TerminalBins(Terminal()) : kSvgBins;
  analysis::SeriesRequest request{.series = infos,
                                  .length = {},
                                  .filter = source.filter,
                                  .max_lines = most,
                                  .threads = source.threads};
  request.length = [&](const analysis::TraceMetadata& metadata) {
    if (!terminal || interval_seconds) return IntervalLength(interval_seconds, metadata);
    const double seconds = metadata.clock.Seconds(metadata.range.Length() + 1);
    return IntervalLength(seconds / static_cast<double>(bins), metadata);  // one a column
  };
  const trace::TraceFile& trace = source.input.trace;
  XENOSCOPE_ASSIGN_OR_RETURN(const analysis::SeriesTotals totals,
                             analysis::ComputeSeriesTotals(trace, source.hints, request));
  WarnOfTrace(totals.metadata);
  if (draw) {
    const double seconds = totals.metadata.clock.Seconds(totals.length);
    const std::string subtitle =
        fmt::format("{}, in intervals of {}", InputName(options.trace.path),
                    report::Label(report::AxisKind::kSeconds, seconds, seconds));
    report::SeriesPlotBuilder builder(totals, 0, bins, subtitle);
    const auto draw_row = [&builder](const analysis::IntervalRow& row) {
      builder.Row(row);
      return absl::OkStatus();
    };
    XENOSCOPE_RETURN_IF_ERROR(analysis::ForEachSeriesRow(trace, totals, draw_row));
    return Draw(options.plot, builder.plot());
  }
  const auto rows = report::MakeSeriesRows(options.format, totals);
  BufferedStdout out;
  const auto write_row = [&](const analysis::IntervalRow& row) {
    rows->Row(row, out.text());
    return out.FlushIfFull();
  };
  rows->Begin(out.text());
  XENOSCOPE_RETURN_IF_ERROR(analysis::ForEachSeriesRow(trace, totals, write_row));
  rows->End(out.text());
  return out.Flush();
}

// Passes points on as rows.
class RowSink : public analysis::PointSink {
 public:
  RowSink(report::ScatterRows& rows, BufferedStdout& out) : rows_(rows), out_(out) {}
  void OnPoint(uint64_t line, Tsc x, uint64_t y) override {
    if (!status_.ok()) return;
    rows_.Point(line, x, y, out_.text());
    status_ = out_.FlushIfFull();
  }
  const absl::Status& status() const { return status_; }

 private:
  report::ScatterRows& rows_;
  BufferedStdout& out_;
  absl::Status status_;
};

// A scatterplot's points over the whole trace.
class ScatterPass {
 public:
  ScatterPass(const Source& source, const analysis::ScatterInfo& info,
              std::optional<uint32_t> parameter)
      : source_(source), scatter_(info.make({source.filter, parameter})) {}
  const analysis::Scatter& scatter() const { return *scatter_; }
  absl::StatusOr<analysis::TraceMetadata> Give(analysis::PointSink& sink) {
    scatter_->SetSink(sink);
    return analysis::PassOverTrace(source_.input.trace, source_.hints, {scatter_.get()});
  }

 private:
  const Source& source_;
  std::unique_ptr<analysis::Scatter> scatter_;
};

absl::Status DrawScatter(const TimelineOptions& options, const Source& source,
                         const analysis::ScatterInfo& info, std::optional<uint32_t> parameter) {
  report::PointExtent totals(info.kind);
  XENOSCOPE_ASSIGN_OR_RETURN(const analysis::TraceMetadata metadata,
                             ScatterPass(source, info, parameter).Give(totals));
  WarnOfTrace(metadata);
  ScatterPass points(source, info, parameter);
  const report::TerminalStyle terminal = Terminal();
  const bool svg = options.plot != "-";
  report::ScatterPlotBuilder builder(totals, info, points.scatter(), metadata,
                                     svg ? kSvgColumns : report::TerminalColumns(terminal),
                                     svg ? kSvgRows : report::TerminalRows(terminal),
                                     InputName(options.trace.path));
  XENOSCOPE_RETURN_IF_ERROR(points.Give(builder).status());
  return Draw(options.plot, builder.plot());
}

absl::Status ShowScatter(const TimelineOptions& options, const analysis::ScatterInfo& info,
                         std::optional<uint32_t> parameter) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Source source, Open(options));
  XENOSCOPE_RETURN_IF_ERROR(CheckFigures(source.input, {&info.figure, 1}));
  if (!options.plot.empty()) return DrawScatter(options, source, info, parameter);
  XENOSCOPE_ASSIGN_OR_RETURN(const analysis::TraceMetadata metadata, source.Metadata());
  WarnOfTrace(metadata);
  ScatterPass points(source, info, parameter);
  BufferedStdout out;
  report::ScatterRows rows(options.format, info, points.scatter(), metadata);
  RowSink sink(rows, out);
  rows.Begin(out.text());
  XENOSCOPE_RETURN_IF_ERROR(points.Give(sink).status());
  XENOSCOPE_RETURN_IF_ERROR(sink.status());
  rows.End(out.text());
  return out.Flush();
}

// Returns what the chart of vCPUs shows of a trace with this clock and range.
absl::StatusOr<report::VcpuChartOptions> ChartOptionsOf(const TimelineOptions& options,
                                                        const Source& source,
                                                        const analysis::TraceMetadata& metadata) {
  const TscRange all{metadata.range.begin, metadata.range.end + 1};
  XENOSCOPE_ASSIGN_OR_RETURN(
      const TscRange wanted,
      RangeOf(options.from, options.to, {all.begin, metadata.clock, source.input.info()}, all));
  report::VcpuChartOptions chosen;
  chosen.shown = wanted.Intersect(all);
  if (chosen.shown.Empty()) {
    return InvalidError("--from and --to select nothing: the trace has {:.6f} s",
                        metadata.clock.Seconds(all.Length()));
  }
  const bool svg = !options.plot.empty() && options.plot != "-";
  chosen.columns = svg ? report::kSvgChartColumns : report::ChartColumns(Terminal());
  chosen.only = source.filter.only;
  chosen.max_vcpus = options.top != 0 ? options.top : kVcpus;
  chosen.domain_name = [&source](DomainId domain) { return source.input.DomainName(domain); };
  return chosen;
}

absl::Status DrawVcpus(const TimelineOptions& options, const analysis::TraceMetadata& metadata,
                       const report::VcpuChartOptions& chosen, report::VcpuChart chart) {
  chart.from = metadata.clock.Seconds(chosen.shown.begin - metadata.range.begin);
  chart.to = metadata.clock.Seconds(chosen.shown.end - metadata.range.begin);
  const double column = (chart.to - chart.from) / static_cast<double>(chosen.columns);
  chart.title = "vCPUs on pCPUs";
  chart.subtitle = fmt::format("{}, in columns of {}", InputName(options.trace.path),
                               report::Label(report::AxisKind::kSeconds, column, column));
  return Draw(options.plot.empty() ? "-" : options.plot, chart);
}

absl::Status ShowVcpus(const TimelineOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Source source, Open(options));
  XENOSCOPE_RETURN_IF_ERROR(CheckFigures(source.input, std::array{trace::Figure::kRunstates}));
  const trace::TraceFile& trace = source.input.trace;
  std::optional<analysis::TraceMetadata> likely =
      analysis::LikelyTraceMetadata(trace, source.hints);
  if (likely && !ChartOptionsOf(options, source, *likely).ok()) likely.reset();
  analysis::TraceMetadata metadata;
  if (likely) {
    metadata = *std::move(likely);
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(metadata, source.Metadata());
  }
  for (;;) {
    XENOSCOPE_ASSIGN_OR_RETURN(const report::VcpuChartOptions chosen,
                               ChartOptionsOf(options, source, metadata));
    const auto make = [&chosen] {
      std::vector<std::unique_ptr<analysis::Analysis>> analyses;
      analyses.push_back(std::make_unique<report::VcpuChartBuilder>(chosen));
      return analyses;
    };
    XENOSCOPE_ASSIGN_OR_RETURN(analysis::AnalysisResult result,
                               analysis::AnalyseTrace(trace, source.hints, make, source.threads));
    if (result.metadata.range == metadata.range) {
      WarnOfTrace(result.metadata);
      const auto& built = static_cast<const report::VcpuChartBuilder&>(*result.analyses->front());
      return DrawVcpus(options, metadata, chosen, built.Build());
    }
    metadata = std::move(result.metadata);
  }
}

// The work that the options ask for. Throws a usage error.
CommandAction MakeAction(const TimelineOptions& options) {
  if (options.list) return List;
  const bool of_vcpus = options.series.empty() && options.scatter.empty();
  if (of_vcpus && (options.format != "text" || !options.interval.empty())) {
    ThrowUsageError("timeline", "the chart of vCPUs has no csv or json; --series runstates has");
  }
  if (!of_vcpus && (options.from || options.to)) {
    ThrowUsageError(
        "timeline",
        "--from and --to go with the chart of vCPUs only, not with --series and --scatter");
  }
  if (of_vcpus) return [options] { return ShowVcpus(options); };
  if (!options.series.empty() && !options.scatter.empty()) {
    ThrowUsageError("timeline", "--series and --scatter cannot go together; give one of them");
  }
  if (!options.scatter.empty()) {
    const auto [info, parameter] = ParseScatter(options.scatter);
    return [options, info = info, parameter = parameter] {
      return ShowScatter(options, *info, parameter);
    };
  }
  std::vector<const analysis::SeriesInfo*> infos;
  for (const std::string& name : options.series) {
    const analysis::SeriesInfo* info = analysis::FindSeries(name);
    if (info == nullptr) {
      ThrowUsageError("--series", UnknownName(name, analysis::kAllSeries));
    }
    infos.push_back(info);
  }
  if (!options.plot.empty() && infos.size() > 1) {
    ThrowUsageError("--plot", "draws one series only; name one");
  }
  std::optional<double> interval;
  if (!options.interval.empty()) interval = ParseInterval(options.interval);
  return [options, infos, interval] { return ShowSeries(options, infos, interval); };
}

}  // namespace

void AddTimeline(Command program, CommandAction& run) {
  auto options = std::make_shared<TimelineOptions>();
  Command command = program.AddSubcommand(
      "timeline", "Draw vCPUs and pCPUs over time; print or draw series and scatterplots");
  AddTraceOptions(command, options->trace);
  command.AddOption("--series", options->series, "Figures per interval; --list shows the names")
      .Suggest("SERIES", NamesOf(analysis::kAllSeries))
      .SplitAt(',')
      .OneWordEach();
  command.AddOption("--scatter", options->scatter, "Points; --list shows the names")
      .Suggest("SCATTERPLOT", NamesOf(analysis::kAllScatters));
  command.AddOption(
      "--interval", options->interval,
      "Length of an interval (1s, 100ms); default: a round length that gives about a hundred");
  command
      .AddOption("-d,--domain", options->domains, "Only these domains, by name or number (web1,2)")
      .ValueName(kDomainValue)
      .SplitAt(',')
      .OneWordEach();
  command.AddOption("--top", options->top,
                    "Number of lines, largest first; the rest is one line. Default: 10 in text, 24 "
                    "vCPUs, else all");
  command.AddWordOption(
      "--from",
      [options](const std::string& text) { options->from = ParseInstant("--from", text); },
      std::string("Chart of vCPUs: beginning: ") + kInstantHelp);
  command.AddWordOption(
      "--to", [options](const std::string& text) { options->to = ParseInstant("--to", text); },
      "Chart of vCPUs: end (not included), as --from");
  AddThreadsOption(command, options->threads, kAnalysisThreads);
  command.AddOption("--format", options->format, "Output format: text, json or csv")
      .OneOf({"text", "json", "csv"})
      .ShowDefault();
  command.AddOption("--plot", options->plot, "Draw to this SVG file; -: draw in the terminal");
  command.AddFlag("--list", options->list, "List all series and scatterplots");
  command.SetFooter(
      "Without --series and --scatter it draws the state of each vCPU and the vCPU on each "
      "pCPU.\nExample:\n  xenoscope timeline web.xeno\n  xenoscope timeline --from 1.2 --to 1.25 "
      "--plot web.svg web.xeno\n  xenoscope timeline --series domain-run-time --interval 100ms "
      "web.xeno\n  xenoscope timeline --series exits,exit-time --domain 2 --format csv web.xeno > "
      "exits.csv\n  xenoscope timeline --series exit-time --plot exits.svg web.xeno\n  xenoscope "
      "timeline --scatter runstate-time --plot - trace.bin\n  xenoscope timeline --scatter "
      "io=0x3f8 --format csv trace.bin > points.csv");
  command.SetCallback([options, &run] { run = MakeAction(*options); });
}

}  // namespace xenoscope::cli
