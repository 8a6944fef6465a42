#include "cli/hot_functions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/profile_source.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using report::HotFunction;
using report::HotFunctions;

std::vector<Dimension> ColumnsFor(report::ThreadsBy by) {
  switch (by) {
    case report::ThreadsBy::kThread:
      return {Dimension::kDomain, Dimension::kThread, Dimension::kFunction};
    case report::ThreadsBy::kProcess:
      return {Dimension::kDomain, Dimension::kProcess, Dimension::kFunction};
    case report::ThreadsBy::kContainer:
      return {Dimension::kDomain, Dimension::kContainer, Dimension::kFunction};
    case report::ThreadsBy::kDomain:
      break;
  }
  return {Dimension::kDomain, Dimension::kFunction};
}

// Returns the text of what the row is of; nothing: it is not known.
std::optional<std::string> LabelOf(const ProfileRow& row, report::ThreadsBy by,
                                   const report::ProfileReport& report) {
  std::string label;
  if (by == report::ThreadsBy::kThread) label = row.thread;
  if (by == report::ThreadsBy::kContainer) label = row.container;
  if (by == report::ThreadsBy::kProcess) {
    label =
        row.process_of_thread.empty() ? report.process_name(row.process) : row.process_of_thread;
  }
  return label.empty() ? std::nullopt : std::optional(label);
}

using Label = std::function<std::optional<std::string>(const ProfileRow&)>;

// Adds the function with the largest share of each label that `hot` does not have yet. Shares
// become parts of the label's own, whose size is known where there is a trace.
void AddHottest(const std::vector<ProfileRow>& rows, std::optional<DomainId> waiting,
                const Label& label_of, HotFunctions& hot) {
  std::map<std::pair<DomainId, std::string>, std::pair<double, const ProfileRow*>> sums;
  for (const ProfileRow& row : rows) {
    std::optional<std::string> label = label_of(row);
    if (!label) continue;
    auto& [sum, largest] = sums[{row.domain, *std::move(label)}];
    sum += row.share;
    if (largest == nullptr || row.share > largest->share) largest = &row;
  }
  for (const auto& [key, found] : sums) {
    const auto& [sum, row] = found;
    if (sum <= 0) continue;
    const auto part = [&sum = sum](double share) { return std::min(share / sum, 1.0); };
    hot.try_emplace({.waiting = waiting, .domain = key.first, .label = key.second},
                    HotFunction{row->function, part(row->share), part(row->interval.low),
                                part(row->interval.high)});
  }
}

std::optional<std::string> AllOfDomain(const ProfileRow& /*row*/) { return ""; }

// Adds those of all time, and returns the profile's report.
absl::StatusOr<report::ProfileReport> AddOfAllTime(const ProfileSource& source,
                                                   const ProfileOptions& options,
                                                   report::ThreadsBy by, HotFunctions& hot) {
  report::ProfileReport out;
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(
      options, {.by = ColumnsFor(by), .further_by = {{Dimension::kDomain, Dimension::kFunction}}},
      out));
  const auto label_of = [&](const ProfileRow& row) { return LabelOf(row, by, out); };
  AddHottest(out.result.rows, {}, label_of, hot);
  AddHottest(out.further.front().rows, {}, AllOfDomain, hot);
  return out;
}

// Returns the rows by the columns, of the time in which a vCPU of the domain waited for the pCPU.
absl::StatusOr<std::vector<ProfileRow>> RowsWhileWaiting(const ProfileSource& source,
                                                         const ProfileOptions& options,
                                                         std::vector<Dimension> columns,
                                                         DomainId waiting,
                                                         report::ProfileReport& out) {
  const size_t listed = columns.size();
  columns.push_back(Dimension::kWaiting);
  std::vector<correlate::WaitingSet> sets;
  correlate::RowChoice choice;
  choice.by = {Dimension::kWaiting};
  choice.set_waiting = [&sets](const std::vector<correlate::WaitingSet>& known) {
    if (sets.size() < known.size()) sets = known;  // they are only added
  };
  choice.is_chosen = [&sets, waiting](const ProfileRow& row) {
    const uint32_t set = row.exit.waiting;
    return set < sets.size() && std::ranges::count(sets[set], waiting, &VcpuRef::domain) > 0;
  };
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(
      options, {.by = std::move(columns), .with_subtotals = true, .choice = std::move(choice)},
      out));
  auto& levels = out.result.chosen_subtotals;
  return levels.size() < listed ? std::vector<ProfileRow>() : std::move(levels[listed - 1]);
}

// Adds those of the time in which a vCPU of the domain waited.
absl::Status AddWhileWaiting(const ProfileSource& source, const ProfileOptions& options,
                             report::ThreadsBy by, DomainId waiting, HotFunctions& hot) {
  report::ProfileReport out;
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<ProfileRow> rows,
                             RowsWhileWaiting(source, options, ColumnsFor(by), waiting, out));
  AddHottest(
      rows, waiting, [&](const ProfileRow& row) { return LabelOf(row, by, out); }, hot);
  if (by == report::ThreadsBy::kDomain) return absl::OkStatus();
  report::ProfileReport of_domains;
  XENOSCOPE_ASSIGN_OR_RETURN(
      rows, RowsWhileWaiting(source, options, {Dimension::kDomain, Dimension::kFunction}, waiting,
                             of_domains));
  AddHottest(rows, waiting, AllOfDomain, hot);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HotFunctions> HotFunctionsOf(const std::string& recording, report::ThreadsBy by,
                                            const std::vector<DomainId>& waiting) {
  ProfileOptions options;
  options.input = recording;
  auto source = ProfileSource::Open(options);
  if (!source.ok()) return InContext(source.status(), "--functions");
  HotFunctions hot;
  std::set<std::string> rest{""};  // events to look at; "": the first one
  std::set<std::string> done;
  constexpr size_t kMaxEvents = 8;
  while (!rest.empty() && done.size() < kMaxEvents) {
    options.event = rest.extract(rest.begin()).value();
    XENOSCOPE_ASSIGN_OR_RETURN(const report::ProfileReport out,
                               AddOfAllTime(*source, options, by, hot));
    done.insert(out.event);
    if (options.event.empty()) rest = out.other_events;
    if (!out.traced) continue;
    for (const DomainId domain : waiting) {
      XENOSCOPE_RETURN_IF_ERROR(AddWhileWaiting(*source, options, by, domain, hot));
    }
  }
  return hot;
}

}  // namespace xenoscope::cli
