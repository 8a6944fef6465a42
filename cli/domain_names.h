// Domains as users write them: names where a recording knows them, else numbers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "recording/info.h"

namespace xenoscope::cli {

// "web1", "3" or "d3". `info` may be null: a bare trace has no names. Errors: NotFound.
absl::StatusOr<DomainId> ChooseDomain(const recording::RecordingInfo* info,
                                      const std::string& text);
absl::StatusOr<std::vector<DomainId>> ChooseDomains(const recording::RecordingInfo* info,
                                                    const std::vector<std::string>& texts);

}  // namespace xenoscope::cli
