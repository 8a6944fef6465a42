// The writer of a recording: its directory, its recording.json, and the files copied into it. At
// every instant the directory is a recording that can be read, by its owner only.
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
  // Makes the directory `path`, which is new. An existing recording there is renamed to `path`.old,
  // whose own predecessor is removed; the remains of a recording that was killed before its first
  // recording.json are removed. Errors (FailedPrecondition): something that is not a recording has
  // this name; ResourceExhausted: the disk is full. After an error all is as before, except for
  // such remains.
  static absl::StatusOr<Writer> Create(const std::string& path);

  [[nodiscard]] const std::string& path() const { return directory_.path(); }
  // Returns the recording's directory, in which sources make further files.
  [[nodiscard]] const Directory& directory() const { return directory_; }

  // Makes the file into which xentrace writes the trace; TracePath returns its path.
  absl::StatusOr<File> CreateTrace() const;
  [[nodiscard]] std::string TracePath() const;

  // Makes samples/NAME.samples.
  absl::StatusOr<SampleWriter> CreateSamples(std::string_view source) const;

  // Copies the file `from` (which may be one that /proc generates) to the place for `kind`, under
  // the file's own name for guests' images. Returns the entry for RecordingInfo::symbols. After an
  // error nothing of the copy is left.
  absl::StatusOr<SymbolFile> AddSymbols(SymbolFile::Kind kind, DomainId domain,
                                        const std::string& from) const;

  // Adds a file with this content, which came from `original`.
  absl::StatusOr<SymbolFile> AddSymbolContent(SymbolFile::Kind kind, DomainId domain, Bytes content,
                                              const std::string& original) const;

  // Adds a file in parts: each call of `next` returns a part, which must stay valid until the
  // following call; an empty part ends the file. Errors: those of `next`, too.
  absl::StatusOr<SymbolFile> AddSymbolParts(SymbolFile::Kind kind, DomainId domain,
                                            const std::function<absl::StatusOr<Bytes>()>& next,
                                            const std::string& original) const;

  // Appends to changes.jsonl, which is made with the first change. After an error none of these
  // changes is in it.
  absl::Status AppendChanges(std::span<const DomainChange> changes);

  // Undoes Create: removes the directory and gives an earlier recording its name back.
  void Abandon() const;

  // Writes all data so far to the disk, and waits for it. Errors: those of WriteError.
  absl::Status Sync() const;

  // Replaces recording.json in one step, for every reader and for a power cut: it waits until the
  // content is on the disk. A recording is called complete only when all of it is on the disk.
  // After an error the last recording.json stays.
  absl::Status WriteInfo(const RecordingInfo& info) const;

 private:
  Writer(Directory parent, std::string name, Directory directory, bool moved)
      : parent_(std::move(parent)),
        name_(std::move(name)),
        directory_(std::move(directory)),
        moved_(moved) {}
  absl::Status MakeDirectories() const;
  // Returns the path for a file of symbols; `leaf` is an image's own name.
  [[nodiscard]] std::string PathFor(SymbolFile::Kind kind, DomainId domain,
                                    const std::string& leaf) const;

  Directory parent_;
  std::string name_;  // name within parent_
  Directory directory_;
  std::optional<ChangeWriter> changes_;
  bool moved_;  // whether an earlier recording was renamed to `name_`.old
};

}  // namespace xenoscope::recording
