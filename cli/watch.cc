// xenoscope watch: which rows of a store are above a limit, for CI and for Prometheus.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/metrics_server.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/store_source.h"
#include "cli/time_of_day.h"
#include "report/profile/watch_metrics.h"
#include "report/profile/watch_view.h"
#include "report/table/table_json.h"
#include "report/terminal.h"
#include "sampler/signals.h"
#include "store/bounded_text.h"

namespace xenoscope::cli {
namespace {

constexpr int kAlarm = 3;  // exit status, as that of diff --fail-above
constexpr uint32_t kDefaultWatchLimit = 10;
constexpr uint32_t kMostRows = 1000;

// A time of a selection, and the option and words that say it: "--since", "1h".
struct SpokenTime {
  std::string option;
  std::string words;
  int64_t store::Selection::*time = nullptr;
  bool of_base = false;
};

struct WatchOptions {
  StoreOptions store;
  StoreOptions base;
  std::vector<SpokenTime> times;
  std::string domain;  // empty: all
  std::string event;   // empty: that of most slices
  std::string by = "domain,function";
  std::optional<double> fail_above;   // percent
  std::optional<double> fail_growth;  // percent
  double alpha = 0.05;
  uint32_t limit = kDefaultWatchLimit;
  std::string format = "text";
  std::string output;            // empty: standard output
  std::string metrics;           // a file; empty: none
  std::optional<uint16_t> port;  // for metrics
};

bool HasBase(const StoreOptions& base) {
  const store::Selection all;
  return !base.selection.hosts.empty() || base.selection.since_ns != all.since_ns ||
         base.selection.until_ns != all.until_ns;
}

struct Watched {
  report::Watch watch;
  report::WatchedSlices slices;
  std::string note;  // what the profile is of
};

// Errors (NotFound): a host that was named has no slice, so that nothing would be seen of it.
absl::Status CheckHosts(const StoreOptions& store, const StoredSlices& slices) {
  std::vector<std::string> missing;
  for (const std::string& host : store.selection.hosts) {
    if (std::ranges::find(slices.hosts, store::BoundedName(host)) == slices.hosts.end()) {
      missing.push_back(host);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return NotFoundError("{}: there is no slice of {} in this time", store.url,
                       fmt::join(missing, ", "));
}

// Asks the store. `options` are a copy: times such as "1h" move.
absl::StatusOr<Watched> Ask(WatchOptions options) {
  for (const SpokenTime& time : options.times) {
    (time.of_base ? options.base : options.store).selection.*time.time =
        ParseTimeOfDay(time.option, time.words);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<correlate::Dimension> by,
                             report::ParseDimensions(options.by));
  report::ProfileReport now;
  StoredSlices slices;
  options.store.selection.event = options.event;
  XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(options.store, options.domain, by, now, &slices));
  XENOSCOPE_RETURN_IF_ERROR(CheckHosts(options.store, slices));
  report::WatchLimits limits{.alpha = options.alpha};
  if (options.fail_above) limits.share = *options.fail_above / 100;
  if (options.fail_growth) limits.growth = *options.fail_growth / 100;
  Watched out;
  if (HasBase(options.base)) {
    SelectAlike(options.store, options.base);
    options.base.selection.event = now.event;
    report::ProfileReport base;
    XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(options.base, options.domain, by, base));
    out.watch = report::WatchProfile(now, &base, limits);
  } else {
    out.watch = report::WatchProfile(now, nullptr, limits);
  }
  out.watch.of_domain = !options.domain.empty();
  out.slices = {slices.slices, slices.hosts.size(), slices.newest_end_ns};
  out.note = now.cautions.back();
  return out;
}

absl::StatusOr<std::string> InFormat(const WatchOptions& options, const Watched& watched) {
  if (options.format == "csv") return WatchCsv(watched.watch, options.limit);
  if (options.format == "json") {
    nlohmann::ordered_json document = WatchJson(watched.watch, options.limit);
    document["slices"] = watched.slices.slices;
    document["hosts"] = watched.slices.hosts;
    return report::Dump(document);
  }
  const report::TextStyle style =
      options.output.empty() ? report::StdoutStyle() : report::TextStyle();
  return watched.note + "\n" + WatchText(watched.watch, options.limit, style);
}

// Asks once. Returns whether there is an alarm.
absl::StatusOr<bool> WatchOnce(const WatchOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Watched watched, Ask(options));
  if (!options.metrics.empty()) {
    XENOSCOPE_RETURN_IF_ERROR(
        ReplaceFile(options.metrics, WatchMetrics(watched.watch, watched.slices, options.limit)));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string text, InFormat(options, watched));
  XENOSCOPE_RETURN_IF_ERROR(WriteOutput(options.output, text));
  if (Alarms(watched.watch) == 0) return false;
  fmt::print(stderr, "{}\n", AlarmText(watched.watch));
  return true;
}

// Asks for each request, until a signal comes.
absl::Status Serve(const WatchOptions& options) {
  const sampler::EndSignals signals;
  const auto page = [&options]() -> absl::StatusOr<std::string> {
    XENOSCOPE_ASSIGN_OR_RETURN(const Watched watched, Ask(options));
    return WatchMetrics(watched.watch, watched.slices, options.limit);
  };
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<MetricsServer> server,
                             MetricsServer::Start(*options.port, page));
  fmt::print(stderr, "metrics: http://127.0.0.1:{}/metrics\n", *options.port);
  constexpr auto kHour = std::chrono::hours(1);
  while (!signals.WaitUntil(std::chrono::steady_clock::now() + kHour)) {
  }
  return absl::OkStatus();
}

Outcome RunWatch(const WatchOptions& options) {
  if (options.port) return Serve(options);
  const absl::StatusOr<bool> alarm = WatchOnce(options);
  Outcome outcome(alarm.status());
  if (alarm.ok() && *alarm) outcome.exit_status = kAlarm;
  return outcome;
}

void TakeMetrics(const std::string& text, WatchOptions& options) {
  if (text.empty()) ThrowUsageError("--metrics", "needs a file or a port");
  if (!NamesPort(text)) {
    options.metrics = text;
    return;
  }
  uint16_t port = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || port == 0) {
    ThrowUsageError("--metrics", text + " is not a port from 1 to 65535");
  }
  options.port = port;
}

// Remembers the words of times, which may be relative to the time of a question.
void TakeTimes(Command command, WatchOptions& options) {
  const auto take = [&](const std::string& name, int64_t store::Selection::*time, bool of_base) {
    const std::optional<Option> option = command.FindOption(name);
    if (!option || option->Words().empty()) return;
    options.times.push_back({name, option->Words().back(), time, of_base});
  };
  take("--since", &store::Selection::since_ns, false);
  take("--until", &store::Selection::until_ns, false);
  take("--base-since", &store::Selection::since_ns, true);
  take("--base-until", &store::Selection::until_ns, true);
}

void Check(const WatchOptions& options) {
  if (options.store.url.empty()) ThrowUsageError("--from-store", "is required");
  const auto by = report::ParseDimensions(options.by);
  if (!by.ok()) ThrowUsageError("--by", std::string(Message(by.status())));
  const bool has_limit = options.fail_above || options.fail_growth;
  if (!has_limit && options.metrics.empty() && !options.port) {
    ThrowUsageError("say what is watched: --fail-above, --fail-growth or --metrics");
  }
  if (options.fail_growth && !HasBase(options.base)) {
    ThrowUsageError("--fail-growth",
                    "needs slices to compare with: --base-since, --base-until or --base-host");
  }
  if (options.port && !options.output.empty()) {
    ThrowUsageError("--output", "does not go with metrics on a port");
  }
}

constexpr const char* kWatchExamples =
    "Examples:\n"
    "  xenoscope watch --from-store sqlite:fleet.db --since 1h --by domain --fail-above 60\n"
    "  xenoscope watch --from-store sqlite:fleet.db --host web1 --since 1h --base-since 8d \\\n"
    "    --base-until 7d --by function --fail-growth 2      # against the same week day, in CI\n"
    "  xenoscope watch --from-store sqlite:fleet.db --since 5m --by host,domain \\\n"
    "    --metrics /var/lib/prometheus/node-exporter/xenoscope.prom   # by a timer\n"
    "  xenoscope watch --from-store clickhouse://db1/profiles --since 5m --metrics 9464\n"
    "Exit status: 0 no alarm, 3 alarm, 1 the store could not be asked or has no slice of this "
    "time.\n"
    "Alarms are of shares that are above a limit by more than chance: the samples say so. How "
    "much\n"
    "load differs from hour to hour is not chance; `xenoscope trend` shows it. Choose limits "
    "above\n"
    "that.";

void AddLimitOptions(Command command, WatchOptions& options) {
  command
      .AddOption("--fail-above", options.fail_above,
                 "Exit with status 3 if a row's share is above this, as 60%, by more than chance")
      .Percent();
  command
      .AddOption("--fail-growth", options.fail_growth,
                 "Exit with status 3 if a row's share is larger than in the --base-... slices by "
                 "more than this, as 2% of all, and by more than chance")
      .Percent();
  command
      .AddOption("--alpha", options.alpha,
                 "Probability of an alarm by chance, for each limit and question, over all rows "
                 "(of more than 50 rows: part of false ones among alarms)")
      .Range(0.0, 0.5)
      .ShowDefault();
}

void AddOutputOptions(Command command, WatchOptions& options) {
  command
      .AddOption("-n,--limit", options.limit,
                 "Rows that are shown, and that have metrics: those with the largest shares. Rows "
                 "in alarm are always shown")
      .Range(1U, kMostRows)
      .ShowDefault();
  command.AddOption("--format", options.format, "Output format")
      .OneOf({"text", "csv", "json"})
      .ShowDefault();
  command.AddOption("-o,--output", options.output, "Write to this file");
  command
      .AddWordOption(
          "--metrics", [&options](const std::string& text) { TakeMetrics(text, options); },
          "Write metrics for Prometheus to this file, which is replaced at once, or serve them at "
          "http://127.0.0.1:PORT/metrics until a signal comes: each request asks the store")
      .ValueName("FILE|PORT");
}

}  // namespace

void AddWatch(Command program, CommandAction& run) {
  auto options = std::make_shared<WatchOptions>();
  Command command = program.AddSubcommand(
      "watch", "Say which rows of a store are above a limit: for CI and Prometheus");
  AddStoreOptions(command, options->store);
  AddOtherSliceOptions(command, "base", options->base);
  command
      .AddOption("--by", options->by, "Columns: any of host,domain,vcpu,mode,exit,image,function")
      .ShowDefault();
  command
      .AddOption("-d,--domain", options->domain,
                 "Only this domain, by name; shares are parts of its own time")
      .ValueName("NAME");
  command
      .AddOption("-e,--event", options->event, "Event of the samples; default: that of most slices")
      .ValueName("EVENT");
  AddLimitOptions(command, *options);
  AddOutputOptions(command, *options);
  command.SetFooter(kWatchExamples);
  command.SetCallback([options, command, &run] {
    Check(*options);
    TakeTimes(command, *options);
    run = [options] { return RunWatch(*options); };
  });
}

}  // namespace xenoscope::cli
