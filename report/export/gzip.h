// Compresses bytes in memory with gzip (RFC 1952).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::report {

// Returns the compressed bytes. Equal bytes give equal results, as the header has no time and no
// name. Errors: Internal when zlib fails.
absl::StatusOr<std::string> Gzip(std::string_view bytes);

}  // namespace xenoscope::report
