// Compresses bytes in memory with gzip (RFC 1952).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::report {

// Returns the compressed bytes. Equal bytes give equal results, as the header has no time and no
// name. Memory: those of the bytes once more. Errors: Internal when libdeflate fails.
absl::StatusOr<std::string> Gzip(std::string_view bytes);

}  // namespace xenoscope::report
