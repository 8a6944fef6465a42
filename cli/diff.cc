// xenoscope diff: where profiles differ from a first one, and whether by more than chance.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
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
#include "cli/store_source.h"
#include "profile/pipeline_options.h"
#include "report/html/page.h"
#include "report/profile/diff_view.h"
#include "report/table/table_json.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;

constexpr size_t kDefaultDiffLimit = 30;  // rows, in text
constexpr int kGrew = 3;                  // the exit status of --fail-above

// One of the profiles that are compared.
struct ComparedProfile {
  ProfileOptions profile;
  StoreOptions store;  // slices of a store in place of the profile's input, if it has a URL
  std::string domain;  // empty: all
};

struct DiffOptions {
  ComparedProfile before;
  ComparedProfile after;            // compared with `before`; its input is each of `inputs` in turn
  std::vector<std::string> inputs;  // recordings to compare with `before`
  std::string by = "domain,mode,image,function";
  std::string per = "share";
  std::vector<double> work;  // units of work in each, `before` first; empty: not asked for
  std::optional<size_t> limit;
  double threshold = 0;              // percent
  std::optional<double> fail_above;  // percent
  std::string format = "text";
  std::string output;  // empty: standard output
};

std::string NameOf(const ComparedProfile& side) {
  std::string name = side.store.url.empty() ? side.profile.input : Describe(side.store);
  if (!side.domain.empty()) name += ", " + side.domain;
  if (!side.profile.event.empty()) name += ", " + side.profile.event;
  return name;
}

absl::Status ProfileOf(const ComparedProfile& side, const std::vector<Dimension>& by,
                       const ProfileSource& source, report::ProfileReport& out) {
  profile::ProfileColumns columns{.by = by};
  const bool narrowed = !side.domain.empty();
  const auto domain = std::ranges::find(columns.by, Dimension::kDomain);
  if (narrowed && domain == columns.by.end()) {
    columns.by.insert(columns.by.begin(), Dimension::kDomain);
  }
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(side.profile, std::move(columns), out));
  if (!narrowed) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, ChooseDomain(source.info(), side.domain));
  Narrow(id, out);
  std::erase(out.by, Dimension::kDomain);  // the other side may be of another domain
  return absl::OkStatus();
}

absl::StatusOr<std::string> InFormat(const DiffOptions& options, const report::Diff& diff,
                                     const report::DiffSelection& selection) {
  if (options.format == "json") return report::Dump(DiffJson(diff, selection));
  if (options.format == "csv") return DiffCsv(diff, selection);
  if (options.format == "folded") return DiffFolded(diff, selection);
  if (options.format == "html") {
    nlohmann::ordered_json page = report::PageHead(
        fmt::format("{} against {}", diff.before.name, diff.afters[0].name), diff.by);
    page["diff"] = DiffJson(diff, selection);
    return report::ToPage(page);
  }
  return DiffText(diff, selection,
                  options.output.empty() ? report::StdoutStyle() : report::TextStyle());
}

// The profiles that are compared, with the first one in front.
std::vector<ComparedProfile> ProfilesOf(const DiffOptions& options) {
  std::vector<ComparedProfile> sides = {options.before};
  for (const std::string& input : options.inputs) {
    sides.push_back(options.after);
    sides.back().profile.input = input;
  }
  return sides;
}

// The quantity that is compared. Errors: the profiles do not have it.
absl::StatusOr<report::DiffBasis> ChooseDiffOf(const DiffOptions& options,
                                               const std::vector<report::ProfileReport>& profiles) {
  const auto is_time = [](const report::ProfileReport& profile) { return profile.is_time; };
  const bool all = std::ranges::all_of(profiles, is_time);
  if (options.per == "second" && !all) {
    return InvalidError("event {} does not count time: compare shares",
                        std::ranges::find_if_not(profiles, is_time)->event);
  }
  if (options.work.empty()) {
    return options.per == "second" ? report::DiffBasis::kProcessor : report::DiffBasis::kShare;
  }
  if (!all && std::ranges::any_of(profiles, is_time)) {
    return InvalidError("event {} counts time and {} does not: compare shares",
                        std::ranges::find_if(profiles, is_time)->event,
                        std::ranges::find_if_not(profiles, is_time)->event);
  }
  return report::DiffBasis::kWork;
}

// The profiles of slices of a store.
absl::Status ProfileOf(const ComparedProfile& side, std::vector<Dimension> by,
                       report::ProfileReport& out) {
  StoreOptions slices = side.store;
  slices.selection.event = side.profile.event;
  return ProfileOfStore(slices, side.domain, std::move(by), out);
}

// Makes the profiles of slices, at the same time: a side waits for its store now and then, and ends
// with work for one thread.
absl::Status MakeProfiles(const std::vector<ComparedProfile>& sides,
                          const std::vector<Dimension>& by,
                          std::vector<report::ProfileReport>& profiles) {
  std::vector<std::future<absl::Status>> made;
  for (size_t i = 0; i < sides.size(); ++i) {
    made.push_back(std::async(std::launch::async, [&side = sides[i], &by, &profile = profiles[i]] {
      return ProfileOf(side, by, profile);
    }));
  }
  absl::Status status;
  for (std::future<absl::Status>& each : made) status.Update(each.get());
  return status;
}

// The same of recordings; rows have names of functions that `sources` then hold.
absl::Status MakeProfiles(const std::vector<ComparedProfile>& sides,
                          const std::vector<Dimension>& by, std::vector<ProfileSource>& sources,
                          std::vector<report::ProfileReport>& profiles) {
  // All recordings are opened before the first one is read, which may take long.
  for (const ComparedProfile& side : sides) {
    XENOSCOPE_ASSIGN_OR_RETURN(ProfileSource source, ProfileSource::Open(side.profile));
    sources.push_back(std::move(source));
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    XENOSCOPE_RETURN_IF_ERROR(ProfileOf(sides[i], by, sources[i], profiles[i]));
  }
  return absl::OkStatus();
}

// Prints the comparison. Returns whether a row grew by more than --fail-above.
absl::StatusOr<bool> RunDiff(const DiffOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<Dimension> by, report::ParseDimensions(options.by));
  const std::vector<ComparedProfile> sides = ProfilesOf(options);
  std::vector<ProfileSource> sources;
  std::vector<report::ProfileReport> profiles(sides.size());
  XENOSCOPE_RETURN_IF_ERROR(options.before.store.url.empty()
                                ? MakeProfiles(sides, by, sources, profiles)
                                : MakeProfiles(sides, by, profiles));
  std::vector<report::DiffSide> compared;
  for (size_t i = 0; i < sides.size(); ++i) {
    const double work = options.work.empty() ? 1 : options.work[i];
    compared.push_back({&profiles[i], NameOf(sides[i]), work});
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const report::DiffBasis of, ChooseDiffOf(options, profiles));
  report::Diff diff = report::DiffProfiles(compared, of);
  diff.of_domains = !options.before.domain.empty();
  report::DiffSelection selection;
  selection.threshold = options.threshold / 100;
  selection.limit = options.limit.value_or(options.format == "text" ? kDefaultDiffLimit : 0);
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string text, InFormat(options, diff, selection));
  XENOSCOPE_RETURN_IF_ERROR(WriteOutput(options.output, text));
  if (!options.fail_above) return false;
  const double most = *options.fail_above / 100;
  const std::vector<const report::DiffRow*> grown = report::GrownRows(diff, most);
  if (grown.empty()) return false;
  fmt::print(stderr, "{}\n", report::GrownRowsText(diff, grown, most));
  return true;
}

Outcome DiffOutcome(const DiffOptions& options) {
  const absl::StatusOr<bool> grew = RunDiff(options);
  Outcome outcome(grew.status());
  if (grew.ok() && *grew) outcome.exit_status = kGrew;
  return outcome;
}

// Gives the other side of slices what was not said of it.
void CheckStores(DiffOptions& options) {
  StoreOptions& before = options.before.store;
  StoreOptions& after = options.after.store;
  CheckStoreOptions(before);
  if (before.url.empty() == options.before.profile.input.empty()) {
    ThrowUsageError("give a recording to compare with, or --from-store");
  }
  if (!before.url.empty()) SelectAlike(before, after);
}

void Check(DiffOptions& options) {
  const auto by = report::ParseDimensions(options.by);
  if (!by.ok()) ThrowUsageError("--by", std::string(Message(by.status())));
  if (std::ranges::find(*by, Dimension::kAddress) != by->end()) {
    ThrowUsageError("--by",
                    "addresses of different recordings cannot be compared; choose other columns");
  }
  const bool by_stack = profile::HasDimension(*by, Dimension::kStack);
  options.before.profile.call_chains = options.after.profile.call_chains = by_stack;
  ComparedProfile& after = options.after;
  CheckStores(options);
  if (options.inputs.empty()) options.inputs = {options.before.profile.input};
  if (after.domain.empty()) after.domain = options.before.domain;
  if (after.profile.event.empty()) after.profile.event = options.before.profile.event;
  if (options.before.domain.empty() != after.domain.empty()) {
    ThrowUsageError("--to-domain", "needs --domain, the domain to compare with");
  }
  after.profile.symbols = options.before.profile.symbols;
  const std::vector<ComparedProfile> sides = ProfilesOf(options);
  for (size_t i = 1; i < sides.size(); ++i) {
    if (NameOf(sides[i]) != NameOf(sides[0])) continue;
    ThrowUsageError("AFTER",
                    "would compare a recording with itself; name a second recording, or give "
                    "--to-domain or --to-event, or of a store --to-host, --to-since or --to-until");
  }
  if (!options.work.empty() && options.work.size() != sides.size()) {
    ThrowUsageError("--work", fmt::format("needs {} numbers, one for each recording: {}",
                                          sides.size(), options.work.size()));
  }
  const bool of_two = options.format == "html" || options.format == "folded";
  if (of_two && sides.size() > 2) {
    ThrowUsageError("--format", options.format + " can show two recordings only");
  }
}

constexpr const char* kDiffExamples =
    "Example:\n"
    "  xenoscope diff before.xeno after.xeno\n"
    "  xenoscope diff before.xeno after.xeno --by domain,exit,function --per second\n"
    "  xenoscope diff before.xeno after.xeno --work 10000,12000\n"
    "  xenoscope diff before.xeno after.xeno --work 10000,12000 --fail-above 2%  # in CI\n"
    "  xenoscope diff monday.xeno tuesday.xeno wednesday.xeno\n"
    "  xenoscope diff before.xeno after.xeno --by stack --format folded | flamegraph.pl "
    ">diff.svg\n"
    "  xenoscope diff web.xeno --domain web1 --to-domain web2\n"
    "  xenoscope diff --from-store sqlite:fleet.db --host web1 --to-host web2\n"
    "  xenoscope diff --from-store sqlite:fleet.db --since 14d --until 7d --to-since 7d --to-until "
    "0s\n"
    "  xenoscope diff web.xeno --domain web1 --event cycles@perf --to-event cycles@agent-3";

// DiffOptions that choose what is compared.
void AddSelectionOptions(Command command, DiffOptions& options) {
  options.before.profile.input.clear();
  command.AddOption("BEFORE", options.before.profile.input, "Recording, or a bare trace");
  command.AddOption("AFTER", options.inputs,
                    "Recordings to compare with the first; default: the first itself");
  command
      .AddOption("--by", options.by,
                 fmt::format("Columns, with commas between them: any of {}",
                             fmt::join(report::ComparableDimensionNames(), ", ")))
      .Suggest("COLUMN,...", report::ComparableDimensionNames())
      .ShowDefault();
  command
      .AddOption("--per", options.per,
                 "share: compare parts of all time; second: compare CPU time per second")
      .OneOf({"share", "second"})
      .ShowDefault();
  command
      .AddOption("--work", options.work,
                 "Units of work done in each recording, such as requests (1000,1200): compare "
                 "cycles per unit")
      .SplitAt(',')
      .OneWordEach()
      .PositiveNumber()
      .Excludes("--per");
  command
      .AddOption("-d,--domain", options.before.domain,
                 "Only this domain, by name or number; shares are parts of its own time")
      .ValueName(kDomainValue);
  command
      .AddOption("--to-domain", options.after.domain,
                 "Domain of the second recording; default: the same")
      .ValueName(kDomainValue);
  command.AddOption("-e,--event", options.before.profile.event, kEventHelp).ValueName(kEventValue);
  command
      .AddOption(
          "--to-event", options.after.profile.event,
          "Event of the second recording, such as that of a guest's agent; default: the same")
      .ValueName(kEventValue);
}

// DiffOptions of the number and format of rows.
void AddOutputOptions(Command command, DiffOptions& options) {
  command.AddOption("-n,--limit", options.limit,
                    "Maximum of rows; 0: all; default: 30, or all in csv and json");
  command
      .AddOption("-t,--threshold", options.threshold, "Minimum difference, in percent of all time")
      .Percent();
  command
      .AddOption("--fail-above", options.fail_above,
                 "Exit with status 3 if a row grew by more than this part of all of the first "
                 "recording, as 2%, and by more than chance (p below 0.05)")
      .Percent();
  command
      .AddOption("--format", options.format,
                 "Output format: text, json, csv, html (a web page) or folded (for flamegraph.pl, "
                 "which colours increases and decreases)")
      .OneOf({"text", "json", "csv", "html", "folded"})
      .ShowDefault();
  command.AddOption("-o,--output", options.output, "Write to this file");
}

}  // namespace

void AddDiff(Command program, CommandAction& run) {
  auto options = std::make_shared<DiffOptions>();
  Command command = program.AddSubcommand(
      "diff", "Compare recordings or domains, with the significance of each difference");
  AddSelectionOptions(command, *options);
  AddOutputOptions(command, *options);
  AddStoreOptions(command, options->before.store);
  AddOtherSliceOptions(command, "to", options->after.store);
  AddSymbolOptions(command, options->before.profile.symbols);
  command.SetFooter(kDiffExamples);
  command.SetCallback([options, &run] {
    Check(*options);
    run = [options] { return DiffOutcome(*options); };
  });
}

}  // namespace xenoscope::cli
