#include "cli/store_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/error.h"
#include "base/spelling.h"
#include "cli/shared_store.h"
#include "cli/time_of_day.h"
#include "profile/pipeline_options.h"
#include "store/late_names.h"
#include "store/merge.h"
#include "store/subtotals.h"

namespace xenoscope::cli {
namespace {

constexpr char kStoreGroup[] = "Options of stores";
constexpr size_t kMostHosts = 5;  // that a note names
constexpr double kNsPerSecond = 1e9;

// Adds an option whose value is a time of day.
void AddTime(Command command, const std::string& name, int64_t& time, const std::string& about) {
  command
      .AddWordOption(
          name, [name, &time](const std::string& text) { time = ParseTimeOfDay(name, text); },
          about)
      .ValueName("TIME")
      .Group(kStoreGroup);
}

// Returns the event that most of the slices are of. There is at least one slice.
std::string ChooseEvent(const std::vector<store::SliceHead>& heads) {
  absl::btree_map<std::string, size_t> events;
  for (const store::SliceHead& head : heads) ++events[head.event];
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::ranges::max_element(events, less)->first;
}

// A store, and which of its slices a question is of.
struct OpenedStore {
  std::unique_ptr<store::Store> store;
  std::vector<store::SliceHead> heads;  // as selected, of all events
  store::Selection selection;           // with the event that most of the slices are of
};

// Says why nothing is selected: a joined slice may begin before the time that was asked for.
absl::Status NothingSelected(store::Store& store, const StoreOptions& options) {
  absl::Status none =
      NotFoundError("{}: there is no slice of these hosts, times and events", options.url);
  store::Selection before = options.selection;
  if (before.since_ns < std::numeric_limits<int64_t>::min() + store::kMaxSliceNs) return none;
  before.until_ns = before.since_ns;
  before.since_ns -= store::kMaxSliceNs;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<store::SliceHead> heads, store.Heads(before));
  const auto last = std::ranges::max_element(heads, {}, &store::SliceHead::end_ns);
  if (last == heads.end() || last->end_ns <= before.until_ns) return none;
  return NotFoundError(
      "{}: no slice begins in this time, but one of {} covers a part of it, from {} to {}: to have "
      "that slice, give --since {}",
      options.url, last->host, TimeOfDayText(last->begin_ns), TimeOfDayText(last->end_ns),
      TimeOfDayText(last->begin_ns));
}

// Errors: those of store::OpenStore; NotFound without a slice.
absl::StatusOr<OpenedStore> OpenFor(const StoreOptions& options) {
  OpenedStore opened{nullptr, {}, options.selection};
  XENOSCOPE_ASSIGN_OR_RETURN(opened.store, OpenForReading(options));
  XENOSCOPE_ASSIGN_OR_RETURN(opened.heads, opened.store->Heads(options.selection));
  if (opened.heads.empty()) return NothingSelected(*opened.store, options);
  opened.selection.event = ChooseEvent(opened.heads);
  return opened;
}

// Returns the first slice in time, and of those the first host's: the order of a store may be
// another one.
const store::SliceHead& FirstOf(const std::vector<store::SliceHead>& heads) {
  return *std::ranges::min_element(heads, {}, [](const store::SliceHead& head) {
    return std::pair<int64_t, std::string_view>(head.begin_ns, head.host);
  });
}

// Completes what the slices are that a result is of, and says it: "60 slices of 2 hosts (a, b) from
// ... to ...".
std::string SelectionNote(const std::vector<store::SliceHead>& heads, const std::string& event,
                          StoredSlices& out) {
  uint64_t error = 0;
  int64_t begin = heads.back().begin_ns;
  for (const store::SliceHead& head : heads) {
    if (head.event != event) continue;
    begin = std::min(begin, head.begin_ns);
    out.newest_end_ns = std::max(out.newest_end_ns, head.end_ns);
    error = std::max(error, head.clock_error_ns);
  }
  std::vector<std::string> hosts = out.hosts;
  if (hosts.size() > kMostHosts) {
    hosts.resize(kMostHosts);
    hosts.emplace_back("...");
  }
  return fmt::format(
      "{} slices of {} host{} ({}) from {} to {}, by clocks that are wrong by at most "
      "{:.3g} s",
      out.slices, out.hosts.size(), out.hosts.size() == 1 ? "" : "s", fmt::join(hosts, ", "),
      TimeOfDayText(begin), TimeOfDayText(out.newest_end_ns),
      static_cast<double>(error) / kNsPerSecond);
}

}  // namespace

absl::StatusOr<std::unique_ptr<store::Store>> OpenForReading(const StoreOptions& options) {
  std::error_code error;
  if (options.shared && !std::filesystem::exists(kSharedStore, error) && !error) {
    return NotFoundError(
        "{}: nothing was shared with this domain yet: run `xenoscope agent` here, and in dom0 "
        "`xenoscope record --active NAME --share NAME`",
        kSharedStore);
  }
  return store::OpenStore(options.url, store::Access::kRead);
}

void AddStoreOptions(Command command, StoreOptions& options) {
  command
      .AddOption("--from-store", options.url,
                 "Instead of a recording, slices of the store that `xenoscope push` filled: "
                 "sqlite:FILE or clickhouse://HOST:PORT/DATABASE")
      .ValueName("URL")
      .Group(kStoreGroup);
  command
      .AddActionFlag(
          "--shared",
          [&options] {
            options.url = fmt::format("sqlite:{}", kSharedStore);
            options.shared = true;
          },
          fmt::format("In a guest: what dom0 shares with it (record --share), which its agent "
                      "keeps; the same as --from-store sqlite:{}",
                      kSharedStore))
      .Excludes("--from-store")
      .Group(kStoreGroup);
  AddSliceOptions(command, options);
}

void AddSliceOptions(Command command, StoreOptions& options) {
  command.AddOption("--host", options.selection.hosts, "Only slices of these hosts; default: all")
      .SplitAt(',')
      .OneWordEach()
      .Group(kStoreGroup);
  AddTime(command, "--since", options.selection.since_ns,
          fmt::format("Only slices that begin at this time or later: {}", kTimeOfDayHelp));
  AddTime(command, "--until", options.selection.until_ns,
          "Only slices that begin before this time");
}

void AddOtherSliceOptions(Command command, const std::string& which, StoreOptions& options) {
  command
      .AddOption("--" + which + "-host", options.selection.hosts,
                 "Compare with slices of these hosts; default: the same")
      .SplitAt(',')
      .OneWordEach()
      .Group(kStoreGroup);
  AddTime(command, "--" + which + "-since", options.selection.since_ns,
          "Compare with slices that begin at this time or later; default: the same times");
  AddTime(command, "--" + which + "-until", options.selection.until_ns,
          "Compare with slices that begin before this time");
}

void SelectAlike(const StoreOptions& options, StoreOptions& others) {
  const store::Selection all;
  others.url = options.url;
  if (others.selection.hosts.empty()) others.selection.hosts = options.selection.hosts;
  if (others.selection.since_ns == all.since_ns && others.selection.until_ns == all.until_ns) {
    others.selection.since_ns = options.selection.since_ns;
    others.selection.until_ns = options.selection.until_ns;
  }
}

void CheckStoreOptions(const StoreOptions& options) {
  const store::Selection all;
  const store::Selection& selection = options.selection;
  if (!options.url.empty() || (selection.hosts.empty() && selection.since_ns == all.since_ns &&
                               selection.until_ns == all.until_ns)) {
    return;
  }
  ThrowUsageError("--host, --since and --until choose slices of a store; give --from-store, too");
}

std::string Describe(const StoreOptions& options) {
  const store::Selection& selection = options.selection;
  const store::Selection all;
  std::string text =
      selection.hosts.empty() ? "all hosts" : fmt::format("{}", fmt::join(selection.hosts, ","));
  if (selection.since_ns != all.since_ns) text += " from " + TimeOfDayText(selection.since_ns);
  if (selection.until_ns != all.until_ns) text += " to " + TimeOfDayText(selection.until_ns);
  return text;
}

absl::StatusOr<StoredTimes> FindStoredTimes(const StoreOptions& options, int64_t interval_ns) {
  XENOSCOPE_ASSIGN_OR_RETURN(const OpenedStore opened, OpenFor(options));
  StoredTimes times{.event = opened.selection.event};
  for (const store::SliceHead& head : opened.heads) {  // in the order of time
    const int64_t begin = head.begin_ns - head.begin_ns % interval_ns;
    if (head.event != times.event) continue;
    times.longest_ns = std::max(times.longest_ns, head.end_ns - head.begin_ns);
    if (times.begins.empty() || times.begins.back() != begin) times.begins.push_back(begin);
  }
  return times;
}

absl::Status ProfileOfStore(const StoreOptions& options, const StoredColumns& columns,
                            report::ProfileReport& out, StoredSlices* slices) {
  XENOSCOPE_ASSIGN_OR_RETURN(OpenedStore opened, OpenFor(options));
  out.by = columns.by;
  const uint64_t clock_hz = FirstOf(opened.heads).clock_hz;
  XENOSCOPE_ASSIGN_OR_RETURN(store::Merger merger, store::Merger::By(columns.by, clock_hz));
  correlate::RowChoice choice;
  if (!columns.filters.empty()) choice = report::ChoiceOf(columns.filters, out);
  std::optional<store::SubtotalMerger> subtotals;
  if (columns.with_subtotals) {
    XENOSCOPE_ASSIGN_OR_RETURN(subtotals,
                               store::SubtotalMerger::Of(columns.by, choice.by, clock_hz));
  }
  store::LateNames late_names(
      [&opened](const std::string& build_id) { return opened.store->Functions(build_id); });
  merger.NameBy(late_names);
  opened.selection.wanted = merger.wanted();
  if (subtotals) {
    subtotals->NameBy(late_names);
    opened.selection.wanted = subtotals->With(merger.wanted());
  }
  const auto add = [&](const store::Slice& slice,
                       const store::Dictionary& dictionary) -> absl::Status {
    XENOSCOPE_RETURN_IF_ERROR(merger.Add(slice, dictionary));
    return subtotals ? subtotals->Add(slice, dictionary) : absl::OkStatus();
  };
  XENOSCOPE_RETURN_IF_ERROR(opened.store->Read(opened.selection, add));
  XENOSCOPE_RETURN_IF_ERROR(late_names.status());
  XENOSCOPE_ASSIGN_OR_RETURN(store::MergedProfile merged, merger.Finish());
  // Slices say why they had no function of a file; that is over where the store has them now.
  std::erase_if(merged.result.unresolved, [&](const correlate::Unresolved& unresolved) {
    return late_names.Knows(unresolved.why);
  });
  StoredSlices about{merged.slices, merged.hosts};
  merged.cautions.push_back(SelectionNote(opened.heads, merged.event, about));
  if (slices != nullptr) *slices = std::move(about);
  out.input = options.url;
  out.has_domain_numbers = false;
  out.domain_name = [domains = merged.domains](DomainId domain) {
    return domains.at(domain.value);
  };
  out.exit_name = [exits = merged.exits](uint32_t reason) { return exits.at(reason); };
  static_cast<profile::SampleSet&>(out) = static_cast<profile::SampleSet&&>(merged);
  static_cast<profile::ProfileResults&>(out) = static_cast<profile::ProfileResults&&>(merged);
  if (!subtotals) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const bool are_upper_bounds, subtotals->Finish(choice, out.result));
  if (are_upper_bounds) {
    out.cautions.emplace_back(
        "Several chosen rows were added up: a store does not keep how their samples come together, "
        "so the intervals of these sums are wider than those that a recording would give.");
  }
  return absl::OkStatus();
}

absl::StatusOr<store::TraceTotals> TraceTotalsOfStore(const StoreOptions& options, Clock& clock,
                                                      std::string& note) {
  XENOSCOPE_ASSIGN_OR_RETURN(OpenedStore opened, OpenFor(options));
  opened.selection.wanted = {.profile = false};
  clock = {FirstOf(opened.heads).clock_hz, ClockSource::kRecorded};
  store::TraceTotals totals(clock.hz);
  XENOSCOPE_RETURN_IF_ERROR(opened.store->Read(
      opened.selection, [&](const store::Slice& slice, const store::Dictionary& dictionary) {
        totals.Add(slice, dictionary);
        return absl::OkStatus();
      }));
  StoredSlices about{totals.slices(), totals.hosts()};
  note = SelectionNote(opened.heads, opened.selection.event, about);
  return totals;
}

void Narrow(DomainId domain, report::ProfileReport& profile) {
  correlate::ProfileResult& result = profile.result;
  const auto all = std::ranges::find(result.domains, domain, &correlate::ProfileRow::domain);
  const double share = all == result.domains.end() ? 0 : all->share;
  result.samples = all == result.domains.end() ? 0 : all->samples;
  std::erase_if(result.rows, [&](const correlate::ProfileRow& row) {
    return share <= 0 || row.domain != domain;
  });
  for (correlate::ProfileRow& row : result.rows) {
    row.share /= share;
    row.variance /= share * share;
    row.interval = correlate::IntervalOf(row.share, row.variance, result.samples);
  }
  result.cycles *= share;
}

absl::Status ProfileOfStore(const StoreOptions& options, const std::string& domain,
                            std::vector<correlate::Dimension> by, report::ProfileReport& out,
                            StoredSlices* slices) {
  using correlate::Dimension;
  if (!domain.empty() && !profile::HasDimension(by, Dimension::kDomain)) {
    by.insert(by.begin(), Dimension::kDomain);
  }
  XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(options, {std::move(by)}, out, slices));
  if (domain.empty()) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> chosen,
                             ChooseStoredDomains(out, {domain}));
  Narrow(chosen.front(), out);
  std::erase(out.by, Dimension::kDomain);  // it may be compared with another domain
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DomainId>> ChooseStoredDomains(const report::ProfileReport& profile,
                                                          const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const correlate::ProfileRow& row : profile.result.domains) {
    known.push_back(profile.domain_name(row.domain));
  }
  std::vector<DomainId> domains;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      const std::vector<std::string_view> views(known.begin(), known.end());
      return NotFoundError("there is no domain '{}' in these slices; they have {}{}", name,
                           fmt::join(known, ", "), SpellingHint(name, views));
    }
    domains.push_back(profile.result.domains[found - known.begin()].domain);
  }
  return domains;
}

}  // namespace xenoscope::cli
