// Domains as users write them: by name where a recording has names, or by number.
#pragma once

#include <string>
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

}  // namespace xenoscope::cli
