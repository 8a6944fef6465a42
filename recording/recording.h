// A recording on disk, for reading: NAME.xeno/ as docs/recording-format.md describes it. Whatever
// state its writer left it in, it reads up to there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "recording/plain_file.h"
#include "recording/sample_reader.h"

namespace xenoscope::recording {

// The samples of one source, with the file under them.
struct SampleStream {
  PlainFile plain_file;
  MappedFile file;
  SampleReader reader;
};

class Recording {
 public:
  // Errors: NotFound: no such directory; InvalidArgument: not a recording, a damaged
  // recording.json, or a newer major version of the format.
  static absl::StatusOr<Recording> Open(const std::string& path);

  // Whether `path` looks like a recording at all; otherwise it may be a bare xentrace file.
  static bool IsRecording(const std::string& path);

  const std::string& path() const { return path_; }
  const RecordingInfo& info() const { return info_; }
  // The host's clock: recorded, else assumed.
  Clock clock() const;
  // What is not as it should be, though it can be read: one line each, for the user.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // The trace, decompressed when it has to be. NotFound: recorded without one.
  absl::StatusOr<PlainFile> OpenTrace() const;
  // The samples of info().sources[source], from their beginning; each call is a new pass.
  // NotFound: the file is missing.
  absl::StatusOr<SampleStream> OpenSamples(size_t source) const;
  // A file of info().symbols.
  absl::StatusOr<PlainFile> OpenSymbols(const SymbolFile& file) const;

 private:
  Recording(std::string path, RecordingInfo info)
      : path_(std::move(path)), info_(std::move(info)) {}

  absl::Status ReadChangesFile();

  std::string path_;
  RecordingInfo info_;
  std::vector<std::string> warnings_;
};

}  // namespace xenoscope::recording
