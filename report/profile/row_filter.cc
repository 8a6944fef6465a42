#include "report/profile/row_filter.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/ids.h"
#include "correlate/subtotals.h"
#include "profile/pipeline_options.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;

bool Matches(const RowFilter& filter, const std::string& word) {
  return std::ranges::any_of(filter.patterns, [&word](const std::string& pattern) {
    return fnmatch(pattern.c_str(), word.c_str(), 0) == 0;
  });
}

// The name alone of "web (1234)", a process or thread with its number.
std::string WithoutNumber(const std::string& text) {
  const size_t begin = text.rfind(" (");
  const bool is_numbered = begin != std::string::npos && text.ends_with(')') &&
                           std::all_of(text.begin() + static_cast<ptrdiff_t>(begin) + 2,
                                       text.end() - 1, absl::ascii_isdigit);
  return is_numbered ? text.substr(0, begin) : text;
}

bool Matches(const RowFilter& filter, const ProfileReport& report, const ProfileRow& row) {
  const std::string text = DimensionText(report, row, filter.dimension);
  if (Matches(filter, text)) return true;
  if (filter.dimension == Dimension::kProcess || filter.dimension == Dimension::kThread) {
    return Matches(filter, WithoutNumber(text));
  }
  std::optional<DomainId> domain;
  if (filter.dimension == Dimension::kDomain) domain = row.domain;
  if (filter.dimension == Dimension::kBehalf) domain = row.behalf;
  if (!domain) return false;
  return Matches(filter, ToString(*domain)) || Matches(filter, fmt::format("{}", domain->value));
}

bool MatchesAll(const std::vector<RowFilter>& filters, const ProfileReport& report,
                const ProfileRow& row) {
  return std::ranges::all_of(filters,
                             [&](const RowFilter& filter) { return Matches(filter, report, row); });
}

void EraseRows(const std::vector<RowFilter>& filters, ProfileReport& report) {
  std::erase_if(report.result.rows,
                [&](const ProfileRow& row) { return !MatchesAll(filters, report, row); });
}

// Returns what the column of a filter that no row matches has: the texts with the largest shares.
std::string WhatThereIs(const RowFilter& filter, const ProfileReport& report) {
  constexpr size_t kMost = 3;
  std::map<std::string, double> shares;
  for (const ProfileRow& row : report.result.rows) {
    shares[DimensionText(report, row, filter.dimension)] += row.share;
  }
  std::vector<std::pair<double, std::string>> largest;
  largest.reserve(shares.size());
  for (const auto& [text, share] : shares) largest.emplace_back(share, text);
  std::ranges::sort(largest, std::ranges::greater());
  largest.resize(std::min(largest.size(), kMost));
  std::vector<std::string> texts;
  texts.reserve(largest.size());
  for (auto& [share, text] : largest) texts.push_back(std::move(text));
  return fmt::format("no row has {}; the largest of {}: {}", filter.text,
                     ToString(filter.dimension), fmt::join(texts, ", "));
}

// Puts the rows by the listed columns in the place of those by all, and subtotals of chosen rows in
// that of others.
absl::Status TakeChosenSubtotals(const std::vector<Dimension>& listed, ProfileReport& report) {
  correlate::ProfileResult& result = report.result;
  std::vector<std::vector<ProfileRow>> levels = std::move(result.chosen_subtotals);
  result.chosen_subtotals.clear();
  XENOSCOPE_RETURN_IF_ERROR(correlate::CheckLevels(levels, result.rows));
  if (listed.size() < report.by.size()) {
    result.rows = std::move(levels[listed.size() - 1]);
    levels.resize(listed.size() - 1);
    report.by = listed;
  }
  if (listed.front() != Dimension::kDomain || levels.empty()) return absl::OkStatus();
  result.domains = std::move(levels.front());
  result.subtotals.assign(std::make_move_iterator(levels.begin() + 1),
                          std::make_move_iterator(levels.end()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RowFilter> ParseRowFilter(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return InvalidError("{}: expected COLUMN=TEXT, as in exit=VMEXIT_CPUID", text);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<Dimension> dimensions,
                             ParseDimensions(text.substr(0, equals)));
  if (dimensions.size() != 1) return InvalidError("{}: expected one column", text);
  RowFilter filter{dimensions[0], absl::StrSplit(text.substr(equals + 1), ','), text};
  for (const std::string& pattern : filter.patterns) {
    const size_t end = pattern.find('=');
    if (end == std::string::npos || !ParseDimensions(pattern.substr(0, end)).ok()) continue;
    return InvalidError(
        "{}: texts after a comma are others for the same column; for rows that are also of {}, "
        "give "
        "--where {} beside it",
        text, pattern, pattern);
  }
  return filter;
}

void AddFilterColumns(const std::vector<RowFilter>& filters, std::vector<Dimension>& by) {
  for (const RowFilter& filter : filters) {
    if (!profile::HasDimension(by, filter.dimension)) by.push_back(filter.dimension);
  }
}

bool CanChooseEarly(const std::vector<RowFilter>& filters) {
  return std::ranges::none_of(
      filters, [](const RowFilter& filter) { return filter.dimension == Dimension::kStack; });
}

correlate::RowChoice ChoiceOf(const std::vector<RowFilter>& filters, ProfileReport& report) {
  correlate::RowChoice choice;
  for (const RowFilter& filter : filters) choice.by.push_back(filter.dimension);
  choice.is_chosen = [&filters, &report](const ProfileRow& row) {
    return MatchesAll(filters, report, row);
  };
  choice.set_waiting = [&report](const std::vector<correlate::WaitingSet>& sets) {
    // Sets are only added.
    if (report.waiting_sets.size() < sets.size()) report.waiting_sets = sets;
  };
  return choice;
}

absl::Status ApplyRowFilters(const std::vector<RowFilter>& filters,
                             const std::vector<Dimension>& listed, ProfileReport& report) {
  if (filters.empty()) return absl::OkStatus();
  for (const RowFilter& filter : filters) {
    const auto matches = [&](const ProfileRow& row) { return Matches(filter, report, row); };
    if (!report.result.rows.empty() && std::ranges::none_of(report.result.rows, matches)) {
      report.cautions.push_back(WhatThereIs(filter, report));
    }
  }
  EraseRows(filters, report);
  // The text of a row is looked up in `result`.
  for (correlate::ProfileResult& further : report.further) {
    std::swap(report.result, further);
    EraseRows(filters, report);
    std::swap(report.result, further);
  }
  RowTotals chosen;
  std::set<DomainId> left;
  for (const ProfileRow& row : report.result.rows) {
    chosen.samples += row.samples;
    chosen.share += row.share;
    chosen.cycles += row.cycles;
    left.insert(row.domain);
  }
  const bool by_domain = std::ranges::find(report.by, Dimension::kDomain) != report.by.end();
  if (by_domain) {
    std::erase_if(report.result.domains,
                  [&left](const ProfileRow& row) { return !left.contains(row.domain); });
  }
  std::string conditions;
  for (const RowFilter& filter : filters) {
    conditions += (conditions.empty() ? "" : " and ") + filter.text;
  }
  report.cautions.push_back(
      fmt::format("only rows with {}: {:.1f} of {} samples, {:.2f}% of all time", conditions,
                  chosen.samples, report.result.samples, chosen.share * 100));
  report.chosen = chosen;
  if (report.result.chosen_subtotals.empty()) return absl::OkStatus();
  return TakeChosenSubtotals(listed, report);
}

}  // namespace xenoscope::report
