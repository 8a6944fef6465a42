// The texts of sources, by the paths that debug information has for them. Those are the words of a
// file that may be anybody's, so what is opened for them lies below directories that the user chose
// and has a name as sources have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

class SourceFinder {
 public:
  // Below "/" a source has the path that compilers knew; below another directory that path or any
  // end of it, the longest first, as trees of sources are moved and copied. Earlier ones first.
  explicit SourceFinder(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}

  // Error: the name is not that of a source, or there is none; for a user.
  absl::StatusOr<FileContent> Open(const std::string& path) const;

 private:
  std::vector<std::string> directories_;
};

}  // namespace xenoscope::symbolizer
