// Options of symbols that are typed once: a file for a host, and one for each user.
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

// What the file says. Errors name it and the line: a word that is no option, a value that is none.
absl::StatusOr<SymbolOptions> ReadSymbolConfig(const std::string& path);
// The same of its text; the path is for errors, and for where relative paths begin.
absl::StatusOr<SymbolOptions> ParseSymbolConfig(std::string_view text, const std::string& path);

// The files that there are, the user's ($XDG_CONFIG_HOME or ~/.config, xenoscope.conf in it) before
// the host's (/etc/xenoscope.conf).
std::vector<std::string> SymbolConfigFiles();

}  // namespace xenoscope::cli
