// Data goes to stdout, whole or with an error that says why not.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace xenoscope::cli {

// Errors: disk full and the like. A reader that has gone (`| head`) is none.
absl::Status WriteStdout(std::string_view text);

}  // namespace xenoscope::cli
