// A directory that is held open. All that is made in it is found from its descriptor, and no
// symbolic link is followed: where others may write to the directory above, they cannot put
// something else in its place meanwhile, and no file that exists is ever written to.
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
  // Opens a directory that exists, by a path of the user's: its symbolic links are followed.
  static absl::StatusOr<Directory> Open(const std::string& path);

  // Opens the directory above `path`, likewise; the second is the name of `path` in it. Errors: it
  // has no such name ("/", "..").
  static absl::StatusOr<std::pair<Directory, std::string>> OpenParent(const std::string& path);

  // What it is called in messages.
  const std::string& path() const { return path_; }
  int fd() const { return file_.fd(); }

  // Paths from here on are relative to this directory; those of the form "a/b" lead through
  // directories, never through symbolic links.

  // Makes a directory that only its owner may enter. Errors: something has the name
  // (AlreadyExists), also when it was put there meanwhile; those of WriteError.
  absl::StatusOr<Directory> Make(const std::string& name) const;
  // Opens the directory `name`. Errors: it is none, or a symbolic link; those of open(2).
  absl::StatusOr<Directory> OpenDirectory(const std::string& name) const;
  // Makes a file that only its owner may read, open for writing, and the directories that lead to
  // it. Errors: something has the name; those of WriteError.
  absl::StatusOr<File> Create(const std::string& path) const;
  // Gives `path` what `write` writes, whole or not at all, also when the power is cut: into
  // `path`.new, which is brought to the disk and then gets the name. Errors: those of `write` and
  // of WriteError.
  absl::Status Replace(const std::string& path,
                       const std::function<absl::Status(int fd)>& write) const;
  // The same, with these bytes.
  absl::Status Replace(const std::string& path, Bytes content) const;

  // Whether something has the name.
  bool Has(const std::string& path) const;
  // The names in it, without "." and "..", in no order. Errors: those of getdents(2).
  absl::StatusOr<std::vector<std::string>> List() const;
  // Renames within this directory, where nothing has the name `to`.
  absl::Status Rename(const std::string& from, const std::string& to) const;
  // Removes a file.
  absl::Status Remove(const std::string& name) const;
  // Removes a directory with all that is in it. Errors: it is deeper than a recording ever is.
  absl::Status RemoveAll(const std::string& name) const;

  // Brings its entries to the disk, not what they name.
  absl::Status Sync() const;

 private:
  Directory(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string Named(const std::string& name) const { return path_ + "/" + name; }
  // The directory of the last part of `path`, which is made if `make`; and that last part.
  absl::StatusOr<std::pair<Directory, std::string>> OpenLeadingDirectory(const std::string& path,
                                                                         bool make) const;
  absl::Status RemoveAll(const std::string& name, int deepest) const;

  std::string path_;
  File file_;
};

}  // namespace xenoscope
