// Which rows of a profile are kept: `report --where exit=VMEXIT_CPUID,VMEXIT_IO*`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/profile.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

struct RowFilter {
  correlate::Dimension dimension;
  // Words of the column, with * and ? as in a shell; one of them must fit. A domain has its name
  // and its number.
  std::vector<std::string> patterns;
  std::string text;  // as it was given
};

// "dimension=pattern,pattern". Errors (InvalidArgument): no such dimension; nothing to compare
// with.
absl::StatusOr<RowFilter> ParseRowFilter(const std::string& text);

// Drops the rows of both results that do not fit all of `wheres`, and the domains of which none is
// left; a caution says how much is left. Shares stay those of all time. The rows must be by these
// dimensions.
void ApplyRowFilters(const std::vector<RowFilter>& filters, ProfileReport& report);

}  // namespace xenoscope::report
