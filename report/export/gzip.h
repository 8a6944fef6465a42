// gzip (RFC 1952) of what is in memory.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::report {

// The same for the same bytes: without a time or a name. Errors: Internal, by zlib.
absl::StatusOr<std::string> Gzip(std::string_view bytes);

}  // namespace xenoscope::report
