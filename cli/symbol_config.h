// Symbol options in files: one for the host, and one for each user.
//
//   # /etc/xenoscope.conf
//   guest = "web1:kernel=/srv/web1/vmlinux,root=/srv/web1"
//   symfs = "/srv/dom0"
//
// Keys are the long names of the options without their dashes; an option that may be given several
// times may have several lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/symbol_options.h"

namespace xenoscope::cli {

// Returns the options in the file. Errors name the file and the line: an unknown option, an invalid
// value.
absl::StatusOr<SymbolOptions> ReadSymbolConfig(const std::string& path);
// Returns the options in `text`. The path is for errors, and its directory is where relative paths
// begin.
absl::StatusOr<SymbolOptions> ParseSymbolConfig(std::string_view text, const std::string& path);

// Returns the existing files: the user's (xenoscope.conf in $XDG_CONFIG_HOME or ~/.config) before
// the host's (/etc/xenoscope.conf).
std::vector<std::string> SymbolConfigFiles();

}  // namespace xenoscope::cli
