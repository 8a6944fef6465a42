#include "sampler/xen/privcmd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {

namespace {

bool IsOnXen() { return ReadSmallFile("/sys/hypervisor/type").value_or("") == "xen"; }

// Returns whether this is a guest by its hexadecimal features, in which XENFEAT_dom0 is bit 11
// (xen/include/public/features.h).
bool IsGuest() {
  constexpr unsigned kDom0Feature = 1U << 11;
  const std::string features = ReadSmallFile("/sys/hypervisor/properties/features").value_or("");
  return !features.empty() && (std::strtoul(features.c_str(), nullptr, 16) & kDom0Feature) == 0;
}

}  // namespace

bool MayBeDom0() { return IsOnXen() && !IsGuest(); }

absl::Status BuiltWithoutXen() {
  return UnimplementedError(
      "this xenoscope was built without Xen's headers: install libxen-dev and build again");
}

absl::Status CheckPrivcmd() {
  if (IsOnXen() && IsGuest()) return PermissionError("this is a guest: record in dom0");
  return CheckOwnPrivcmd();
}

absl::Status CheckOwnPrivcmd() {
  if (!IsOnXen()) {
    return PreconditionError(
        "this machine does not run on Xen (/sys/hypervisor/type): record in dom0 of a Xen host");
  }
  if (geteuid() != 0) return PermissionError("recording takes hypercalls: run it as root");
  const int fd = open("/dev/xen/privcmd", O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    close(fd);
    return absl::OkStatus();
  }
  if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
    return PreconditionError("/dev/xen/privcmd is missing: run `modprobe xen-privcmd`");
  }
  return ErrnoError(errno, "cannot open /dev/xen/privcmd");
}

}  // namespace xenoscope::sampler
