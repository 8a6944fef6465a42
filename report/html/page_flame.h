// The profile of an HTML report, from which the page makes any grouping: flame graphs and tables
// from domains down to lines of source. Of bounded size, however many places were sampled.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "correlate/profile.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// The columns that the page can group by, of the profile that goes with it.
std::vector<correlate::Dimension> PageColumns();

// The rows of that profile, for report/html/web/src/data.ts. Lines are told apart in the `most`
// largest rows, functions in the `most` largest of those without lines; the rest is one row of its
// domain, vCPU, mode and exit. O(n log n).
nlohmann::ordered_json PageFlame(const ProfileReport& report, const correlate::ProfileResult& flame,
                                 size_t max);

}  // namespace xenoscope::report
