// A report as one self-contained HTML file: the page of report/html/web with its data.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "correlate/profile.h"
#include "report/profile/profile_format.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Returns the page with its data (report/html/web/src/data.ts). Errors: Unimplemented if the
// command was built without the page.
absl::StatusOr<std::string> ToPage(const nlohmann::ordered_json& data);

// Returns the beginning of the page's data: its title and the descriptions of its columns.
nlohmann::ordered_json PageHead(const std::string& title,
                                const std::vector<correlate::Dimension>& by);

// Returns the time of day at the page's first instant. The report knows the wall clock.
nlohmann::ordered_json PageClock(const ProfileReport& report, Tsc zero);

// Returns what every page of a profile begins with: the head, the rows that are shown, the notes on
// data quality, one sentence each, in addition to changes and cautions, and the figures of each
// domain with its share by mode. `flame`, of the report `of_flame`, must be by domain and mode.
nlohmann::ordered_json ProfilePage(const ProfileReport& shown, const ProfileReport& of_flame,
                                   const correlate::ProfileResult& flame,
                                   const ProfileFormatOptions& options);

// Returns the most bytes of a page of a host with so many pCPUs: it is to be below 3 MB for 2
// pCPUs, and below 10 MB for any host, so that a browser opens it at once and people can send it.
[[nodiscard]] size_t MostBytes(size_t pcpus);

// Returns how many bytes the rest of the page may take. At least kLeastRestBytes, if all else takes
// more than MostBytes leaves. O(data).
inline constexpr size_t kLeastRestBytes = 500'000;
[[nodiscard]] size_t BytesLeft(const nlohmann::ordered_json& data, size_t pcpus);

}  // namespace xenoscope::report
