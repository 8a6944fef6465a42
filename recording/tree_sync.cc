#include "recording/tree_sync.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace xenoscope::recording {

absl::Status TreeSync::Sync(const Directory& directory) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory.List());
  absl::Status first;
  for (const std::string& name : names) {
    struct stat status {};
    if (fstatat(directory.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    absl::Status synced;
    if (S_ISDIR(status.st_mode)) {
      const auto below = directory.OpenDirectory(name);
      if (below.ok()) synced = Sync(*below);
    } else if (S_ISREG(status.st_mode)) {
      synced = SyncFile(directory, name);
    }
    first.Update(synced);
  }
  first.Update(directory.Sync());
  return first;
}

absl::Status TreeSync::SyncFile(const Directory& directory, const std::string& name) {
  const File file(openat(directory.fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  // The file has been removed or renamed.
  if (!file.is_open() || fstat(file.fd(), &status) != 0) return absl::OkStatus();
  // The version is read before the sync: what is written meanwhile is synced next time.
  const Version version{status.st_size, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
  const auto known = synced_.find(status.st_ino);
  if (known != synced_.end() && known->second == version) return absl::OkStatus();
  if (fdatasync(file.fd()) != 0) {
    return WriteError(errno, fmt::format("cannot bring {}/{} to the disk", directory.path(), name));
  }
  synced_[status.st_ino] = version;
  return absl::OkStatus();
}

}  // namespace xenoscope::recording
