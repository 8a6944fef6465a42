// A directory that is held open. Everything in it is reached from its descriptor, and no symbolic
// link is followed: another user who may write to the directory above cannot put something else in
// its place meanwhile. No file that exists is ever written to.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/file.h"

namespace xenoscope {

class Directory {
 public:
  // Opens a directory that exists, by a path that the user gave: its symbolic links are followed.
  [[nodiscard]] static absl::StatusOr<Directory> Open(const std::string& path);

  // Opens the directory above `path`, by the same rule. Returns it with the name of `path` in it.
  // Errors: `path` has no such name ("/", "..").
  [[nodiscard]] static absl::StatusOr<std::pair<Directory, std::string>> OpenParent(
      const std::string& path);

  // The path that messages show.
  const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return file_.fd(); }

  // Paths from here on are relative to this directory; those of the form "a/b" lead through
  // directories, never through symbolic links.

  // Makes a directory that only its owner may enter. Errors: something has the name
  // (AlreadyExists), also when it was put there meanwhile; those of WriteError.
  [[nodiscard]] absl::StatusOr<Directory> Make(const std::string& name) const;
  // Opens the directory `name`. Errors: it is none, or a symbolic link; those of open(2).
  [[nodiscard]] absl::StatusOr<Directory> OpenDirectory(const std::string& name) const;
  // Makes a file that only its owner may read, open for writing, and the directories that lead to
  // it. Errors: something has the name; those of WriteError.
  [[nodiscard]] absl::StatusOr<File> Create(const std::string& path) const;
  // Replaces the content of `path` by what `write` writes: wholly or not at all, even when the
  // power is cut. It goes into `path`.new, which is brought to the disk and then renamed. Errors:
  // those of `write` and of WriteError.
  [[nodiscard]] absl::Status Replace(const std::string& path,
                                     const std::function<absl::Status(int fd)>& write) const;
  // Replaces the content of `path` by these bytes, in the same way.
  [[nodiscard]] absl::Status Replace(const std::string& path, Bytes content) const;

  // Makes files of one name in this directory and in `other` one file with two names, where their
  // bytes are the same: it needs its space once. Errors: the names are not those of files; those
  // of linkat(2), as where `other` is on another file system. O(bytes).
  [[nodiscard]] absl::Status ShareEqualFile(const std::string& name, const Directory& other) const;

  // Whether something has the name.
  [[nodiscard]] bool Has(const std::string& path) const;
  // Returns the names in the directory, without "." and "..", in no order. Errors: those of
  // getdents(2).
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> List() const;
  // Renames `from` to `to`, which nothing has as its name, within this directory.
  [[nodiscard]] absl::Status Rename(const std::string& from, const std::string& to) const;
  // Removes a file.
  [[nodiscard]] absl::Status Remove(const std::string& name) const;
  // Removes a directory with all that is in it. Errors: it is deeper than a recording can be.
  [[nodiscard]] absl::Status RemoveAll(const std::string& name) const;

  // Brings the directory's entries to the disk, not the files that they name.
  [[nodiscard]] absl::Status Sync() const;

 private:
  Directory(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] std::string Named(const std::string& name) const { return path_ + "/" + name; }
  // Returns the directory that holds the last part of `path`, which is made if `make`, and that
  // last part.
  [[nodiscard]] absl::StatusOr<std::pair<Directory, std::string>> OpenLeadingDirectory(
      const std::string& path, bool make) const;
  [[nodiscard]] absl::Status RemoveAll(const std::string& name, int deepest) const;

  std::string path_;
  File file_;
};

}  // namespace xenoscope
