// A recording as one file, to be read on another machine: a tar archive compressed with zstd, which
// `tar --zstd -xf` unpacks too. The same recording and files give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope::recording {

// A file that the recording has not, and is to have in the archive.
struct AddedFile {
  std::string name;  // below the recording's directory: "symbols/images/3f..."
  Bytes content;
};

// Writes all regular files of the directory and the added ones, in order of their names, without
// times and owners. The file is there whole or not at all. Links and other things are left out.
absl::Status PackRecording(const std::string& directory, const std::vector<AddedFile>& added,
                           const std::string& file);

// Unpacks into `directory`, which is made and must not be there before. The archive may be
// anybody's: what is no regular file or directory, has a name that leads elsewhere, or is far
// larger than an archive of its size can honestly be, is an error, and then nothing is left.
absl::Status UnpackRecording(const std::string& file, const std::string& directory);

}  // namespace xenoscope::recording
