// Selection of rows of a profile: `report --where exit=VMEXIT_CPUID,VMEXIT_IO*`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/profile.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

struct RowFilter {
  correlate::Dimension dimension;
  // Texts of the column, with * and ? as in a shell; one of them must match. A domain matches by
  // name and by number, a process or thread with its number and without.
  std::vector<std::string> patterns;
  std::string text;  // the option's argument
};

// Parses "dimension=pattern,pattern". Errors (InvalidArgument): an unknown dimension; no pattern.
absl::StatusOr<RowFilter> ParseRowFilter(const std::string& text);

// Adds the columns that the filters need, and `by` does not have.
void AddFilterColumns(const std::vector<RowFilter>& filters, std::vector<correlate::Dimension>& by);

// Whether rows of these columns can be chosen while samples are placed: it is known by then what
// they stand for. Stacks are not known.
[[nodiscard]] bool CanChooseEarly(const std::vector<RowFilter>& filters);

// Returns the choice of the rows that match all of `filters`, for their subtotals. `report` has the
// names of what rows are of, gets those of waiting vCPUs, and outlives the profile.
[[nodiscard]] correlate::RowChoice ChoiceOf(const std::vector<RowFilter>& filters,
                                            ProfileReport& report);

// Drops the rows of both results that do not match all of `filters`, and domains without a row
// left; says in the report, and in a caution, what is left. Shares stay parts of all time. The rows
// must be by these dimensions. Where the result has subtotals of the chosen rows, its rows are then
// by `listed` alone, the first columns of `by`, and domains and subtotals are those of chosen rows.
// Errors (Internal): rows do not add up to their subtotals.
[[nodiscard]] absl::Status ApplyRowFilters(const std::vector<RowFilter>& filters,
                                           const std::vector<correlate::Dimension>& listed,
                                           ProfileReport& report);

}  // namespace xenoscope::report
