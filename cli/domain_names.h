// Domains as users write them: by name where a recording has names, or by number.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "recording/info.h"

namespace xenoscope::cli {

// The name of an option's value that is a domain of the recording: completion knows it.
inline constexpr const char* kDomainValue = "DOMAIN";
// That of one that chooses rows by what is in a column: completion knows columns, domains and
// modes.
inline constexpr const char* kFilterValue = "COLUMN=TEXT";

// Returns the domain that "web1", "3" or "d3" names. `info` is null for a bare trace, which has no
// names. Errors: NotFound.
absl::StatusOr<DomainId> ChooseDomain(const recording::RecordingInfo* info,
                                      const std::string& text);
absl::StatusOr<std::vector<DomainId>> ChooseDomains(const recording::RecordingInfo* info,
                                                    const std::vector<std::string>& texts);

// Says on stderr which of the chosen domains are not among those that have `what` ("records"), and
// which are: a table without rows does not say whether a number was wrong.
void WarnOfAbsentDomains(std::span<const DomainId> chosen, const std::set<DomainId>& present,
                         std::string_view what);

}  // namespace xenoscope::cli
