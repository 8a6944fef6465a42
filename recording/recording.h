// A recording on disk, for reading: NAME.xeno/ as docs/recording-format.md describes it. It can be
// read up to where its writer came, whatever ended the writer.
#pragma once

#include <map>
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

// The samples of one source, with the mapped file that they point into.
struct SampleStream {
  std::optional<PlainFile> plain_file;  // nothing: the recording holds it
  MappedFile file;
  SampleReader reader;
};

// An opened recording.
class Recording {
 public:
  // Opens the recording at `path`. Errors: NotFound: no such directory; InvalidArgument: not a
  // recording, a damaged recording.json, or a newer major version of the format.
  static absl::StatusOr<Recording> Open(const std::string& path);

  // Returns whether `path` looks like a recording; if not, it may be a bare xentrace file.
  static bool IsRecording(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const RecordingInfo& info() const { return info_; }
  // Returns the host's clock: the recorded one, else the assumed one.
  [[nodiscard]] Clock clock() const;
  // Returns the faults with which the recording can still be read: one line each, for the user.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // Opens the trace, decompressed if necessary. NotFound: recorded without one.
  absl::StatusOr<PlainFile> OpenTrace() const;
  // Opens the samples of info().sources[source] at their beginning; each call is a new pass.
  // NotFound: the file is missing.
  absl::StatusOr<SampleStream> OpenSamples(size_t source) const;
  // Makes OpenSamples open `made` instead of that file: what a reader made of it.
  void ReplaceSamples(size_t source, TemporaryFile made);
  // Opens a file of info().symbols.
  absl::StatusOr<PlainFile> OpenSymbols(const SymbolFile& file) const;

 private:
  Recording(std::string path, RecordingInfo info)
      : path_(std::move(path)), info_(std::move(info)) {}

  absl::Status ReadChangesFile();

  std::string path_;
  RecordingInfo info_;
  std::vector<std::string> warnings_;
  std::map<size_t, PlainFile> replaced_;  // files of samples, by source
};

}  // namespace xenoscope::recording
