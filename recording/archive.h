// A recording as one file, to be read on another machine: a tar archive compressed with zstd, which
// `tar --zstd -xf` unpacks too. The same recording and files give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope::recording {

// A file that the archive is to have and the recording does not.
struct AddedFile {
  std::string name;  // path below the recording's directory: "symbols/images/3f..."
  Bytes content;
};

// Writes all regular files of the directory and the added ones, in the order of their names,
// without times and owners. `file` is there whole or not at all. Links and special files are left
// out.
absl::Status PackRecording(const std::string& directory, const std::vector<AddedFile>& added,
                           const std::string& file);

// Unpacks into `directory`, which is made and must not exist before. Nothing in the archive is
// trusted: an entry that is no regular file or directory, a name that leads out of the directory,
// and a size that no real archive of this length has, are errors, after which nothing is left.
absl::Status UnpackRecording(const std::string& file, const std::string& directory);

}  // namespace xenoscope::recording
