#include "sampler/open_as_user.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

constexpr gid_t kNoGroup = 65534;

// Returns the number that the four of a line agree on: "Uid:\t1000\t1000\t1000\t1000".
std::optional<uint32_t> AgreedId(std::string_view status, std::string_view key) {
  const std::string_view line = FieldOf(status, key).value_or("");
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(line.data(), line.size()), '\t');
  constexpr size_t kFields = 4;
  uint32_t id = 0;
  if (fields.size() != kFields || !absl::SimpleAtoi(fields[0], &id)) return std::nullopt;
  const bool agreed = std::all_of(fields.begin(), fields.end(), [&fields](absl::string_view field) {
    return field == fields[0];
  });
  return agreed ? std::optional(id) : std::nullopt;
}

// Returns the mount of an open file (proc_pid_fdinfo(5)), without a call to the file system, which
// may be a user's own and never answer.
std::optional<int> MountOf(int file) {
  const std::string info =
      ReadSmallFile(fmt::format("/proc/self/fdinfo/{}", file)).value_or(std::string());
  const std::string_view number = FieldOf(info, "mnt_id:").value_or("");
  int mount = 0;
  if (!absl::SimpleAtoi(absl::string_view(number.data(), number.size()), &mount)) {
    return std::nullopt;
  }
  return mount;
}

bool OnSameMount(int a, int b) {
  const auto mount = MountOf(a);
  return mount && mount == MountOf(b);
}

bool IsSame(int a, const char* b) {
  struct stat one {};
  struct stat other {};
  return fstat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

// Returns whether only root can mount what the process sees: its mount namespace is this process's,
// or belongs to this process's user namespace.
bool HasRootsMounts(const std::string& process) {
  const File mounts(open((process + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  if (!mounts.is_open()) return false;
  if (IsSame(mounts.fd(), "/proc/self/ns/mnt")) return true;
  const File users(ioctl(mounts.fd(), NS_GET_USERNS));
  return users.is_open() && IsSame(users.fd(), "/proc/self/ns/user");
}

}  // namespace

std::optional<UserIds> ParseUserIds(std::string_view status) {
  const std::optional<uint32_t> user = AgreedId(status, "Uid:\t");
  const std::optional<uint32_t> group = AgreedId(status, "Gid:\t");
  if (!user || !group) return std::nullopt;
  return UserIds{*user, *group};
}

// It uses the kernel's calls, which affect one thread; the C library's affect all threads.
void WithRightsOf(const UserIds& ids, const std::function<void()>& act) {
  std::thread([&] {
    constexpr int kUnchanged = -1;
    (void)syscall(SYS_setgroups, 0, nullptr);
    (void)syscall(SYS_setresgid, kUnchanged, ids.group, kUnchanged);
    (void)syscall(SYS_setresuid, kUnchanged, ids.user, kUnchanged);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
    if (syscall(SYS_capset, &header, none.data()) == 0) act();
  }).join();
}

File OpenProcessTmp(const std::string& process) {
  const File root(open((process + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) return {};
  File tmp(openat(root.fd(), "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!tmp.is_open()) return {};
  return OnSameMount(root.fd(), tmp.fd()) || HasRootsMounts(process) ? std::move(tmp) : File();
}

File OpenAsUser(int directory, const std::string& name, std::optional<UserIds> ids) {
  const File found(openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open() || !OnSameMount(directory, found.fd())) return {};
  struct stat status {};
  if (fstat(found.fd(), &status) != 0) return {};
  const UserIds reader = ids.value_or(UserIds{status.st_uid, kNoGroup});
  // A file with another name may be in a directory that the user cannot enter.
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1 || status.st_uid != reader.user) return {};
  File file;
  WithRightsOf(reader, [&] {
    // This opens the very file that was examined, whatever has its name by now.
    const std::string path = fmt::format("/proc/self/fd/{}", found.fd());
    file = File(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  });
  return file;
}

}  // namespace xenoscope::sampler
