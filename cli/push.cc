// xenoscope push: adds recordings to a store, as slices of their hosts' time.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/options.h"
#include "cli/profile_source.h"
#include "cli/push_symbols.h"
#include "cli/report_findings.h"
#include "cli/shared_slice.h"
#include "cli/time_of_day.h"
#include "store/bounded_text.h"
#include "store/gather.h"
#include "store/gather_trace.h"
#include "store/store.h"

namespace xenoscope::cli {
namespace {

// How far a slice's end may be ahead of this host's clock, beyond the error of its own.
constexpr int64_t kMaxAheadNs = int64_t{60} * 1'000'000'000;

struct PushOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> symbols;  // files and directories of programs, whose functions are added
  std::string to;
  std::string share;                // the domain whose owner's part is pushed; empty: all of it
  std::string host;                 // empty: the recorded one
  std::optional<int64_t> began_ns;  // of the only recording
  bool quiet = false;
  ProfileOptions profile;
};

// Returns the slice's head, without what the profile says of the event.
absl::StatusOr<store::SliceHead> HeadOf(const PushOptions& options,
                                        const recording::RecordingInfo& info) {
  const std::string& input = options.profile.input;
  store::SliceHead head;
  head.host = store::BoundedName(options.host.empty() ? info.host.name : options.host);
  if (head.host.empty()) {
    return InvalidError("{}: the recording does not say which host it is of; give --host", input);
  }
  if (!options.began_ns && !info.wall_clock) {
    return InvalidError(
        "{}: the recording does not say what time it was made (format 1.11 does); give --began",
        input);
  }
  const Clock clock{info.host.clock_hz, ClockSource::kRecorded};
  head.begin_ns = options.began_ns.value_or(
      info.wall_clock ? static_cast<int64_t>(info.wall_clock->utc_ns) : 0);
  head.end_ns =
      head.begin_ns + static_cast<int64_t>(clock.Nanoseconds(info.stopped - info.started));
  head.clock_error_ns = options.began_ns ? 0 : info.wall_clock->error_ns;
  head.clock_hz = info.host.clock_hz;
  const int64_t now = absl::GetCurrentTimeNanos();
  if (head.end_ns > now + kMaxAheadNs + static_cast<int64_t>(head.clock_error_ns)) {
    return InvalidError(
        "{}: the slice ends at {}, which is in the future; set the clock of host {}, or of this "
        "one",
        input, TimeOfDayText(head.end_ns), head.host);
  }
  return head;
}

// Returns the sums of the recording, with domains as `label` names them.
absl::StatusOr<store::KeyedSlice> GatherSlice(
    const PushOptions& options, const ProfileSource& source,
    const std::function<std::string(const report::ProfileReport&, DomainId)>& label_of) {
  store::KeyedSlice gathered;
  store::SliceHead& head = gathered.slice.head;
  XENOSCOPE_ASSIGN_OR_RETURN(head, HeadOf(options, *source.info()));
  report::ProfileReport made;
  using correlate::Dimension;
  // Rules look at whole functions.
  made.by = {Dimension::kDomain, Dimension::kMode, Dimension::kImage, Dimension::kFunction};
  FindingsPass findings(options.profile, FindingsDetail::kHypercalls);
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(options.profile,
                                           {.by = made.by, .sums_by = store::GatheredColumns()},
                                           made, findings.observers()));
  findings.AddTo(source, made);
  head.event = store::BoundedName(made.event);
  head.is_time = made.is_time;
  head.traced = made.stratified && made.traced;
  head.period = made.is_time && made.period > 0 ? made.period : 1;
  store::SliceSums& sums = gathered.slice.sums;
  const auto label = [&](DomainId domain) { return label_of(made, domain); };
  sums = store::Gather(made, made, label, gathered.dictionary);
  if (findings.document() != nullptr) {
    store::GatherTrace(*findings.document(), findings.traced(), label, gathered.dictionary, sums);
  }
  for (const findings::Finding& finding : made.findings) {
    store::AddFinding(finding.rule, finding.domain ? label(*finding.domain) : "", finding.cycles,
                      sums);
  }
  return gathered;
}

// Returns the part of the recording that the owner of the domain may see.
absl::StatusOr<store::KeyedSlice> GatherShared(PushOptions options, const ProfileSource& source) {
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::DomainInfo domain,
                             FindSharedDomain(*source.info(), options.share));
  if (options.profile.event.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(options.profile.event, SharedEvent(*source.recording(), domain.id));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(
      const store::KeyedSlice whole,
      GatherSlice(options, source, [](const report::ProfileReport& /*made*/, DomainId id) {
        return SharedLabel(id);
      }));
  return OwnPartOf(whole, domain);
}

// Pushes one recording; no store: to the file of a slice. Returns whether it was new to the store.
absl::StatusOr<bool> PushOne(const PushOptions& options, store::Store* to) {
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  if (source.info() == nullptr) {
    return InvalidError("{}: a bare trace says neither host nor time; record with xenoscope record",
                        options.profile.input);
  }
  store::KeyedSlice slice;
  if (options.share.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(slice, GatherSlice(options, source, report::DomainLabel));
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(slice, GatherShared(options, source));
  }
  if (to != nullptr) return to->Push(slice.slice, slice.dictionary);
  XENOSCOPE_RETURN_IF_ERROR(WriteSlice(options.to, slice));
  return true;
}

void ShowSymbols(const std::string& to, const PushedSymbols& pushed) {
  fmt::print(stderr, "{}: functions of {} file{} added; {} left out\n", to, pushed.files,
             pushed.files == 1 ? "" : "s", pushed.others);
  for (const std::string& reason : pushed.left_out) fmt::print(stderr, "  {}\n", reason);
  if (pushed.others > pushed.left_out.size()) fmt::print(stderr, "  ...\n");
}

absl::Status Push(PushOptions options) {
  std::unique_ptr<store::Store> to;
  if (!options.to.starts_with(kSliceScheme)) {
    XENOSCOPE_ASSIGN_OR_RETURN(to, store::OpenStore(options.to, store::Access::kCreate));
  }
  if (!options.symbols.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const PushedSymbols pushed, PushSymbols(options.symbols, *to));
    if (!options.quiet) ShowSymbols(options.to, pushed);
  }
  if (options.inputs.empty()) return absl::OkStatus();
  size_t known = 0;
  for (const std::string& input : options.inputs) {
    options.profile.input = input;
    XENOSCOPE_ASSIGN_OR_RETURN(const bool is_new, PushOne(options, to.get()));
    if (!is_new) ++known;
  }
  if (options.quiet) return absl::OkStatus();
  fmt::print(stderr, "{}: slices added: {}; already there: {}\n", options.to,
             options.inputs.size() - known, known);
  return absl::OkStatus();
}

}  // namespace

void AddPush(Command program, CommandAction& run) {
  auto options = std::make_shared<PushOptions>();
  Command command = program.AddSubcommand(
      "push", "Add recordings to a store of many hosts and times, for report --from-store");
  command.AddOption("RECORDING", options->inputs, "Recordings: each becomes a slice");
  command
      .AddOption("--to", options->to,
                 "Store: sqlite:FILE, which is made if it is not there, or "
                 "clickhouse://[USER@]HOST:PORT/DATABASE")
      .Required()
      .ValueName("URL");
  command
      .AddOption("--share", options->share,
                 "Only what the owner of this domain may see, by name or id: its own time, waits, "
                 "VM exits, hypercalls and functions, without the names of other domains, their "
                 "code and the host (docs/shared.md). Also to slice:FILE: the bytes that `record "
                 "--share` sends")
      .ValueName(kDomainValue);
  command.AddOption("--host", options->host, "Name of the host; default: as it was recorded");
  command
      .AddWordOption(
          "--began",
          [options](const std::string& text) {
            options->began_ns = ParseTimeOfDay("--began", text);
          },
          fmt::format("Time at which the only recording began, where it does not say so itself "
                      "(before format 1.11): {}",
                      kTimeOfDayHelp))
      .ValueName("TIME");
  command
      .AddOption("--symbols", options->symbols,
                 "Also, or without a recording, add the functions of this program, or of all below "
                 "this directory: code in slices whose files were not at hand then gets its names, "
                 "by build-id. May be repeated")
      .ValueName("FILE|DIR")
      .Repeatable();
  command.AddFlag("-q,--quiet", options->quiet, "Print errors only");
  command.AddOption("-e,--event", options->profile.event, kEventHelp).ValueName(kEventValue);
  AddSymbolOptions(command, options->profile.symbols);
  command.SetFooter(
      "Example:\n"
      "  xenoscope push web.xeno --to sqlite:fleet.db\n"
      "  xenoscope push --symbols build/server --to sqlite:fleet.db\n"
      "  xenoscope push web.xeno --share web1 --to sqlite:web1.db    # for the owner of web1\n"
      "  xenoscope report --from-store sqlite:fleet.db --since 24h --by domain,function");
  options->profile.name_places = true;
  command.SetCallback([options, &run] {
    if (options->inputs.empty() && options->symbols.empty()) {
      ThrowUsageError("give recordings, or --symbols");
    }
    if (options->began_ns && options->inputs.size() > 1) {
      ThrowUsageError("--began", "goes with one recording");
    }
    const bool to_slice = options->to.starts_with(kSliceScheme);
    if (!options->share.empty() && !options->symbols.empty()) {
      ThrowUsageError("--share", "does not go with --symbols");
    }
    if (to_slice && (options->share.empty() || options->inputs.size() != 1)) {
      ThrowUsageError("--to", "slice:FILE goes with --share and one recording");
    }
    run = [options] { return Push(*options); };
  });
}

}  // namespace xenoscope::cli
