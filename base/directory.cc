#include "base/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/error.h"

namespace xenoscope {
namespace {

constexpr mode_t kOwnersDirectory = 0700;
constexpr mode_t kOwnersFile = 0600;
constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kOpenFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
constexpr int kMaxDepth = 8;  // nested directories; a recording has three

// The directory that mkdir made may have been renamed, and its name given to another one: only an
// empty directory of this user is accepted, as it has no files. An inherited access control list
// may let others in.
absl::Status Secure(const Directory& made) {
  struct stat status {};
  const bool is_own = fstat(made.fd(), &status) == 0 && status.st_uid == geteuid() &&
                      fchmod(made.fd(), kOwnersDirectory) == 0;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, made.List());
  if (is_own && names.empty()) return absl::OkStatus();
  return PreconditionError(
      "another user replaced {} while it was made: record with -o to a directory that only you can "
      "write",
      made.path());
}

// Whether these are two files, and have the same bytes.
bool AreEqualFiles(int a, int b) {
  constexpr size_t kPiece = size_t{1} << 16;
  struct stat of_a {};
  struct stat of_b {};
  if (fstat(a, &of_a) != 0 || fstat(b, &of_b) != 0) return false;
  const bool may_be = S_ISREG(of_a.st_mode) && S_ISREG(of_b.st_mode) &&
                      of_a.st_size == of_b.st_size && of_a.st_ino != of_b.st_ino;
  if (!may_be) return false;
  std::vector<char> piece_a(kPiece);
  std::vector<char> piece_b(kPiece);
  for (off_t at = 0; at < of_a.st_size;) {
    const ssize_t read_a = pread(a, piece_a.data(), kPiece, at);
    const ssize_t read_b = pread(b, piece_b.data(), kPiece, at);
    if (read_a <= 0 || read_a != read_b ||
        !std::equal(piece_a.begin(), piece_a.begin() + read_a, piece_b.begin()))
      return false;
    at += read_a;
  }
  return true;
}

}  // namespace

absl::StatusOr<Directory> Directory::Open(const std::string& path) {
  File file(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.is_open()) return ErrnoError(errno, "cannot open the directory {}", path);
  return Directory(path, std::move(file));
}

absl::StatusOr<std::pair<Directory, std::string>> Directory::OpenParent(const std::string& path) {
  std::string_view rest = path;
  while (rest.size() > 1 && rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = rest.rfind('/');
  std::string name(slash == std::string_view::npos ? rest : rest.substr(slash + 1));
  if (name.empty() || name == "." || name == "..") {
    return InvalidError("'{}' is not a name for something new", path);
  }
  std::string above(slash == std::string_view::npos ? "." : rest.substr(0, slash));
  if (above.empty()) above = "/";
  XENOSCOPE_ASSIGN_OR_RETURN(Directory directory, Open(above));
  return std::pair(std::move(directory), std::move(name));
}

absl::StatusOr<Directory> Directory::Make(const std::string& name) const {
  if (mkdirat(fd(), name.c_str(), kOwnersDirectory) != 0) {
    return WriteError(errno, "cannot make " + Named(name));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(Directory made, OpenDirectory(name));
  XENOSCOPE_RETURN_IF_ERROR(Secure(made));
  return made;
}

absl::StatusOr<Directory> Directory::OpenDirectory(const std::string& name) const {
  File file(openat(fd(), name.c_str(), kOpenDirectory));
  if (!file.is_open()) return ErrnoError(errno, "cannot open the directory {}", Named(name));
  return Directory(Named(name), std::move(file));
}

absl::StatusOr<std::pair<Directory, std::string>> Directory::OpenLeadingDirectory(
    const std::string& path, bool make) const {
  XENOSCOPE_ASSIGN_OR_RETURN(Directory at, OpenDirectory("."));
  at.path_ = path_;
  std::string_view rest = path;
  for (size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    const std::string name(rest.substr(0, slash));
    rest.remove_prefix(slash + 1);
    absl::StatusOr<Directory> below =
        make && !at.Has(name) ? at.Make(name) : at.OpenDirectory(name);
    if (!below.ok()) return below.status();
    at = *std::move(below);
  }
  return std::pair(std::move(at), std::string(rest));
}

absl::StatusOr<File> Directory::Create(const std::string& path) const {
  XENOSCOPE_ASSIGN_OR_RETURN(const auto lead, OpenLeadingDirectory(path, true));
  File file(openat(lead.first.fd(), lead.second.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnersFile));
  if (!file.is_open()) return WriteError(errno, "cannot create " + Named(path));
  return file;
}

absl::Status Directory::Replace(const std::string& path,
                                const std::function<absl::Status(int fd)>& write) const {
  XENOSCOPE_ASSIGN_OR_RETURN(const auto lead, OpenLeadingDirectory(path, true));
  const auto& [directory, name] = lead;
  const std::string temporary = name + ".new";
  unlinkat(directory.fd(), temporary.c_str(), 0);  // a killed process may have left it
  XENOSCOPE_ASSIGN_OR_RETURN(const File file, directory.Create(temporary));
  absl::Status status = write(file.fd());
  if (status.ok() && fsync(file.fd()) != 0) {
    status = WriteError(errno, "cannot write " + directory.Named(temporary));
  }
  if (status.ok() &&
      renameat(directory.fd(), temporary.c_str(), directory.fd(), name.c_str()) != 0) {
    status = WriteError(errno, "cannot write " + Named(path));
  }
  if (!status.ok()) unlinkat(directory.fd(), temporary.c_str(), 0);
  return status;
}

absl::Status Directory::Replace(const std::string& path, Bytes content) const {
  return Replace(path, [&](int file) {
    const int error = WriteAll(file, content);
    return error == 0 ? absl::OkStatus() : WriteError(error, "cannot write " + Named(path));
  });
}

absl::Status Directory::ShareEqualFile(const std::string& name, const Directory& other) const {
  const File own(openat(fd(), name.c_str(), kOpenFile));
  const File others(openat(other.fd(), name.c_str(), kOpenFile));
  if (!own.is_open() || !others.is_open()) return ErrnoError(errno, "cannot read {}", Named(name));
  if (!AreEqualFiles(own.fd(), others.fd())) return absl::OkStatus();
  const std::string temporary = name + ".new";
  unlinkat(fd(), temporary.c_str(), 0);  // a killed process may have left it
  if (linkat(other.fd(), name.c_str(), fd(), temporary.c_str(), 0) != 0 ||
      renameat(fd(), temporary.c_str(), fd(), name.c_str()) != 0) {
    const int error = errno;
    unlinkat(fd(), temporary.c_str(), 0);
    return ErrnoError(error, "cannot link {} to {}", Named(name), other.Named(name));
  }
  return absl::OkStatus();
}

bool Directory::Has(const std::string& path) const {
  struct stat ignored {};
  return fstatat(fd(), path.c_str(), &ignored, AT_SYMLINK_NOFOLLOW) == 0;
}

absl::StatusOr<std::vector<std::string>> Directory::List() const {
  File again(openat(fd(), ".", kOpenDirectory));  // for its own position
  struct Close {
    void operator()(DIR* list) const { closedir(list); }
  };
  const std::unique_ptr<DIR, Close> list(fdopendir(again.fd()));
  if (list == nullptr) return ErrnoError(errno, "cannot read the directory {}", path_);
  again.Release();
  std::vector<std::string> names;
  errno = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own
  while (const dirent* entry = readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return ErrnoError(errno, "cannot read the directory {}", path_);
  return names;
}

absl::Status Directory::Rename(const std::string& from, const std::string& to) const {
  int result = renameat2(fd(), from.c_str(), fd(), to.c_str(), RENAME_NOREPLACE);
  // Some file systems cannot do that. There renameat can replace nothing but an empty directory.
  if (result != 0 && errno == EINVAL) result = renameat(fd(), from.c_str(), fd(), to.c_str());
  if (result == 0) return absl::OkStatus();
  return ErrnoError(errno, "cannot rename {} to {}", Named(from), Named(to));
}

absl::Status Directory::Remove(const std::string& name) const {
  if (unlinkat(fd(), name.c_str(), 0) == 0) return absl::OkStatus();
  return ErrnoError(errno, "cannot remove {}", Named(name));
}

absl::Status Directory::RemoveAll(const std::string& name) const {
  return RemoveAll(name, kMaxDepth);
}

absl::Status Directory::RemoveAll(const std::string& name, int deepest) const {
  if (deepest == 0) return PreconditionError("{} is deeper than a recording: move it", path_);
  XENOSCOPE_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(name));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory.List());
  for (const std::string& below : names) {
    struct stat status {};
    const bool is_directory =
        fstatat(directory.fd(), below.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode);
    XENOSCOPE_RETURN_IF_ERROR(is_directory ? directory.RemoveAll(below, deepest - 1)
                                           : directory.Remove(below));
  }
  if (unlinkat(fd(), name.c_str(), AT_REMOVEDIR) == 0) return absl::OkStatus();
  return ErrnoError(errno, "cannot remove {}", Named(name));
}

absl::Status Directory::Sync() const {
  if (fsync(fd()) == 0) return absl::OkStatus();
  // Some file systems (9p, FUSE) cannot sync directories.
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return absl::OkStatus();
  return WriteError(errno, "cannot bring " + path_ + " to the disk");
}

}  // namespace xenoscope
