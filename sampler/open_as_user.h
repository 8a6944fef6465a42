// Files that any user's processes offer to others: opened so that the answer is never more than
// the user could have read alone.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace xenoscope::sampler {

struct UserIds {
  uid_t user = 0;
  gid_t group = 0;
  bool operator==(const UserIds&) const = default;
};

// The user and group in the text of /proc/PID/status (proc_pid_status(5)). Nothing when the real,
// effective, saved and file system ids differ, as in a setuid program: it has two users' rights.
std::optional<UserIds> ParseUserIds(std::string_view status);

// Opens /tmp as the process sees it. `process` is its directory in /proc. A mount on /tmp counts
// only where the process's mounts are those of root, in root's user namespace: others can mount
// what they may not read. Not open: no such directory, or a symbolic link.
File OpenProcessTmp(const std::string& process);

// Opens the file `name` in `directory` for reading, with the rights of that user and group and of
// no other: without root's, without supplementary groups. With no `ids`: with those of the file's
// owner. Not open unless it is a regular file of that user, by its only name and no symbolic link,
// on the mount that `directory` is on. Never waits.
File OpenAsUser(int directory, const std::string& name, std::optional<UserIds> ids);

}  // namespace xenoscope::sampler
