// xenoscope trend: shares over time, from a store.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/store_source.h"
#include "cli/time_of_day.h"
#include "report/profile/trend_view.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

constexpr size_t kDefaultTrendLimit = 10;
constexpr size_t kMaxParts = 1000;

struct TrendOptions {
  StoreOptions store;
  std::string by = "domain,function";
  int64_t interval_ns = int64_t{3600} * 1'000'000'000;
  uint32_t limit = kDefaultTrendLimit;
  std::string format = "text";
  std::string output;  // empty: standard output
};

// The parts of the selected time that have slices, each with its profile.
absl::StatusOr<std::vector<report::TrendPart>> PartsOf(const TrendOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<correlate::Dimension> by,
                             report::ParseDimensions(options.by));
  XENOSCOPE_ASSIGN_OR_RETURN(const StoredTimes times,
                             FindStoredTimes(options.store, options.interval_ns));
  const std::vector<int64_t>& begins = times.begins;
  if (begins.size() > kMaxParts) {
    return InvalidError(
        "the selected slices are in {} intervals, which is more than {}: choose a "
        "longer --interval or a shorter time",
        begins.size(), kMaxParts);
  }
  if (times.longest_ns > options.interval_ns) {
    fmt::print(
        stderr,
        "xenoscope: there are slices of up to {}, each in the interval in which it begins: "
        "shorter intervals do not divide them\n",
        absl::FormatDuration(absl::Trunc(absl::Nanoseconds(times.longest_ns), absl::Seconds(1))));
  }
  std::vector<report::TrendPart> parts;
  for (const int64_t begin : begins) {
    StoreOptions part = options.store;
    part.selection.since_ns = std::max(part.selection.since_ns, begin);
    part.selection.until_ns = std::min(part.selection.until_ns, begin + options.interval_ns);
    part.selection.event = times.event;
    report::TrendPart& out = parts.emplace_back();
    out.begin = TimeOfDayText(begin);
    XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(part, {by}, out.profile));
  }
  return parts;
}

absl::Status RunTrend(const TrendOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<report::TrendPart> parts, PartsOf(options));
  const std::vector<report::TrendRow> rows = report::Trend(parts, options.limit);
  const report::Table table = report::TrendTable(parts, rows);
  if (options.format == "csv") return WriteOutput(options.output, report::ToCsv(table));
  if (options.format == "json") {
    return WriteOutput(options.output, report::Dump(report::ToJson(table)));
  }
  const report::TextStyle style =
      options.output.empty() ? report::StdoutStyle() : report::TextStyle();
  return WriteOutput(options.output, report::ToText(table, style));
}

}  // namespace

void AddTrend(Command program, CommandAction& run) {
  auto options = std::make_shared<TrendOptions>();
  Command command = program.AddSubcommand(
      "trend", "Show shares over time, from a store, and where their level changes");
  AddStoreOptions(command, options->store);
  command
      .AddOption("--by", options->by, "Columns: any of host,domain,vcpu,mode,exit,image,function")
      .ShowDefault();
  command
      .AddWordOption(
          "--interval",
          [options](const std::string& text) {
            options->interval_ns = ParseLength("--interval", text);
          },
          "Length of the parts of the time that are compared, such as 10m, 1h, 1d; default: 1h")
      .ValueName("TIME");
  command.AddOption("-n,--limit", options->limit, "Maximum of rows, by mean share; 0: all")
      .ShowDefault();
  command.AddOption("--format", options->format, "Output format")
      .OneOf({"text", "csv", "json"})
      .ShowDefault();
  command.AddOption("-o,--output", options->output, "Write to this file");
  command.SetFooter(
      "Example:\n"
      "  xenoscope trend --from-store sqlite:fleet.db --since 7d --interval 1d --by function\n"
      "A line says where a row's level changes, against the row's usual variation from part to\n"
      "part: at most 5 % of reports mark a row whose level does not change. That takes some 12\n"
      "parts for ten rows. `xenoscope diff --from-store` compares two times.");
  command.SetCallback([options, &run] {
    if (options->store.url.empty()) ThrowUsageError("--from-store", "is required");
    run = [options] { return RunTrend(*options); };
  });
}

}  // namespace xenoscope::cli
