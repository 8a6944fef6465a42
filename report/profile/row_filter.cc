#include "report/profile/row_filter.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/ids.h"
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

bool Matches(const RowFilter& filter, const ProfileReport& report, const ProfileRow& row) {
  if (Matches(filter, DimensionText(report, row, filter.dimension))) return true;
  std::optional<DomainId> domain;
  if (filter.dimension == Dimension::kDomain) domain = row.domain;
  if (filter.dimension == Dimension::kBehalf) domain = row.behalf;
  if (!domain) return false;
  return Matches(filter, ToString(*domain)) || Matches(filter, fmt::format("{}", domain->value));
}

void EraseRows(const std::vector<RowFilter>& filters, ProfileReport& report) {
  std::erase_if(report.result.rows, [&](const ProfileRow& row) {
    return !std::ranges::all_of(
        filters, [&](const RowFilter& filter) { return Matches(filter, report, row); });
  });
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
  return RowFilter{dimensions[0], absl::StrSplit(text.substr(equals + 1), ','), text};
}

void AddFilterColumns(const std::vector<RowFilter>& filters, std::vector<Dimension>& by) {
  for (const RowFilter& filter : filters) {
    if (!profile::HasDimension(by, filter.dimension)) by.push_back(filter.dimension);
  }
}

void ApplyRowFilters(const std::vector<RowFilter>& filters, ProfileReport& report) {
  if (filters.empty()) return;
  EraseRows(filters, report);
  // The text of a row is looked up in `result`.
  std::swap(report.result, report.secondary);
  EraseRows(filters, report);
  std::swap(report.result, report.secondary);
  double samples = 0;
  double share = 0;
  std::set<DomainId> left;
  for (const ProfileRow& row : report.result.rows) {
    samples += row.samples;
    share += row.share;
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
                  samples, report.result.samples, share * 100));
}

}  // namespace xenoscope::report
