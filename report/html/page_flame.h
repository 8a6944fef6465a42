// The profile of an HTML report. The page groups it in any way: flame graphs and tables from
// domains down to lines of source. Its size is bounded, whatever the number of sampled places.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "correlate/profile.h"
#include "report/html/page_over_time.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// The most that a page has; the smallest rows beyond it are summed up.
struct PageFlameLimit {
  size_t rows = 15'000;
  size_t bytes = 2'500'000;  // as JSON: call chains of many different functions take most
};

// Returns the columns that the page of a report by these can group by, beside the subreason, which
// is in stacks. The profile must be by them.
std::vector<correlate::Dimension> PageColumns(const std::vector<correlate::Dimension>& by);

// Returns the rows of that profile, for report/html/web/src/data.ts. The `limit.rows` largest rows
// have all columns, as many of the others have lines, as many of the others have functions; all
// others are summed by domain, vCPU, mode and exit. There are fewer where they take too many bytes.
// O(n log n).
// Each row has its samples over time, counted from `zero`; null: they have no times. Errors:
// Internal when libdeflate fails.
absl::StatusOr<nlohmann::ordered_json> PageFlame(const ProfileReport& report,
                                                 const correlate::ProfileResult& flame,
                                                 const PageOverTime* over_time, Tsc zero,
                                                 PageFlameLimit limit);

}  // namespace xenoscope::report
