// A finder of source files, by the paths in debug information. These paths come from files that are
// not trusted, so only files below directories that the user chose, and with names as sources have,
// are opened.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

class SourceFinder {
 public:
  // Below "/" a source has the path that the compiler knew. Below another directory it has that
  // path or any end of it, the longest first, as trees of sources are moved and copied. Earlier
  // directories come first.
  explicit SourceFinder(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}

  // Opens a source. Error, for a user: the name is not that of a source, or there is no such file.
  absl::StatusOr<FileContent> Open(const std::string& path) const;

 private:
  std::vector<std::string> directories_;
};

}  // namespace xenoscope::symbolizer
