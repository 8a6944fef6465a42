// Makes a recording: the directory, its recording.json, and the files copied into it. At every
// instant what is on disk is a recording that can be read, by its owner alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/file.h"
#include "recording/changes.h"
#include "recording/info.h"
#include "recording/sample_writer.h"

namespace xenoscope::recording {

class Writer {
 public:
  // Makes the directory `path`, which is new. A recording that is there already is renamed to
  // `path`.old, whose own predecessor is removed; what a recording left that was killed before its
  // first recording.json is removed. Errors (FailedPrecondition): something that is not a recording
  // is in the way; ResourceExhausted: disk full. After an error all is as it was, but for such
  // leavings.
  static absl::StatusOr<Writer> Create(const std::string& path);

  const std::string& path() const { return directory_.path(); }
  // The recording's directory: makes further files in it.
  const Directory& directory() const { return directory_; }

  // Makes the file where the trace is to be written, unchanged, by xentrace; what it is called.
  absl::StatusOr<File> CreateTrace() const;
  std::string TracePath() const;

  // Makes samples/NAME.samples.
  absl::StatusOr<SampleWriter> CreateSamples(std::string_view source) const;

  // Copies `from` (a file, or a text that /proc makes up on reading) to where `kind` has its place,
  // under the file's own name for guests' images. Gives the entry for RecordingInfo::symbols. After
  // an error there is nothing of it.
  absl::StatusOr<SymbolFile> AddSymbols(SymbolFile::Kind kind, DomainId domain,
                                        const std::string& from) const;

  // The same with content that comes from elsewhere; `original` says where from.
  absl::StatusOr<SymbolFile> AddSymbolContent(SymbolFile::Kind kind, DomainId domain, Bytes content,
                                              const std::string& original) const;

  // The same in parts: each call of `next` gives one, which need not stay valid beyond the
  // following call; an empty one ends the file. Errors: that of `next`, too.
  absl::StatusOr<SymbolFile> AddSymbolParts(SymbolFile::Kind kind, DomainId domain,
                                            const std::function<absl::StatusOr<Bytes>()>& next,
                                            const std::string& original) const;

  // Adds to changes.jsonl, which is made with the first of them. After an error it has none of
  // them.
  absl::Status AppendChanges(std::span<const DomainChange> changes);

  // Takes back what Create did: removes the directory and gives an earlier recording its name
  // again.
  void Abandon() const;

  // Brings all that was written so far to the disk, and waits for it. Errors: those of WriteError.
  absl::Status Sync() const;

  // Replaces recording.json, in one step for every reader and for a power cut: waits until its
  // content is on the disk. What is complete is all on the disk before it says so. After an error
  // the last recording.json stays.
  absl::Status WriteInfo(const RecordingInfo& info) const;

 private:
  Writer(Directory parent, std::string name, Directory directory, bool moved)
      : parent_(std::move(parent)),
        name_(std::move(name)),
        directory_(std::move(directory)),
        moved_(moved) {}
  absl::Status MakeDirectories() const;
  // Where a file of symbols has its place; `leaf` is an image's own name.
  std::string PathFor(SymbolFile::Kind kind, DomainId domain, const std::string& leaf) const;

  Directory parent_;
  std::string name_;  // in parent_
  Directory directory_;
  std::optional<ChangeWriter> changes_;
  bool moved_;  // there is a `name_`.old that was `name_`
};

}  // namespace xenoscope::recording
