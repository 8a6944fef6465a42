// Files that processes of any user offer to others. They are opened with that user's rights, so
// that a recording contains nothing that the user could not have read.
#pragma once

#include <sys/types.h>

#include <functional>
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

// Returns the user and group in the text of /proc/PID/status (proc_pid_status(5)). Nothing when the
// real, effective, saved and file system ids differ, as in a setuid program, which has two users'
// rights.
std::optional<UserIds> ParseUserIds(std::string_view status);

// Runs `act` on a thread with the rights of that user, as far as this process may take them, and
// without capabilities.
void WithRightsOf(const UserIds& ids, const std::function<void()>& act);

// Opens /tmp as a process sees it. `process` is its directory in /proc. A mount on /tmp is used
// only where the process has root's mounts, in root's user namespace: others can mount what they
// may not read. The file is not open: no such directory, or a symbolic link.
File OpenProcessTmp(const std::string& process);

// Opens the file `name` in `directory` for reading, with the rights of that user and group only:
// without root's, without supplementary groups. Without `ids`: with those of the file's owner. The
// file is not open unless it is a regular file of that user, with one name, no symbolic link, and
// on the mount of `directory`. Never waits.
File OpenAsUser(int directory, const std::string& name, std::optional<UserIds> ids);

}  // namespace xenoscope::sampler
