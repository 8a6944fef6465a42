// Makes a recording: the directory, its recording.json, and the files copied into it. At every
// instant what is on disk is a recording that can be read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "recording/info.h"
#include "recording/sample_writer.h"

namespace xenoscope::recording {

class Writer {
 public:
  // Makes the directory `path`. A recording that is there already is renamed to `path`.old, whose
  // own predecessor is removed. Errors (FailedPrecondition): something that is not a recording is
  // in the way; ResourceExhausted: disk full.
  static absl::StatusOr<Writer> Create(const std::string& path);

  const std::string& path() const { return path_; }
  // Where the trace is to be written, unchanged, by xentrace.
  std::string TracePath() const;

  // Makes samples/NAME.samples.
  absl::StatusOr<SampleWriter> CreateSamples(std::string_view source) const;

  // Copies `from` (a file, or a text that /proc makes up on reading) to where `kind` has its place,
  // under the file's own name for guests' images. Gives the entry for RecordingInfo::symbols.
  absl::StatusOr<SymbolFile> AddSymbols(SymbolFile::Kind kind, DomainId domain,
                                        const std::string& from) const;

  // The same with content that comes from elsewhere; `original` says where from.
  absl::StatusOr<SymbolFile> AddSymbolContent(SymbolFile::Kind kind, DomainId domain, Bytes content,
                                              const std::string& original) const;

  // Takes back what Create did: removes the directory and gives an earlier recording its name
  // again.
  void Abandon() const;

  // Replaces recording.json, in one step for every reader. Waits for the disk only once it is
  // complete.
  absl::Status WriteInfo(const RecordingInfo& info) const;

 private:
  Writer(std::string path, bool moved) : path_(std::move(path)), moved_(moved) {}
  std::string In(std::string_view name) const;
  // Where a file of symbols has its place; `leaf` is an image's own name.
  absl::StatusOr<std::string> PlaceOf(SymbolFile::Kind kind, DomainId domain,
                                      const std::string& leaf) const;

  std::string path_;
  bool moved_;  // there is a `path`.old that was `path`
};

}  // namespace xenoscope::recording
