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
  // name and by number.
  std::vector<std::string> patterns;
  std::string text;  // the option's argument
};

// Parses "dimension=pattern,pattern". Errors (InvalidArgument): an unknown dimension; no pattern.
absl::StatusOr<RowFilter> ParseRowFilter(const std::string& text);

// Adds the columns that the filters need, and `by` does not have.
void AddFilterColumns(const std::vector<RowFilter>& filters, std::vector<correlate::Dimension>& by);

// Drops the rows of both results that do not match all of `filters`, and domains without a row
// left; adds a caution with the samples that are left. Shares stay parts of all time. The rows must
// be by these dimensions.
void ApplyRowFilters(const std::vector<RowFilter>& filters, ProfileReport& report);

}  // namespace xenoscope::report
