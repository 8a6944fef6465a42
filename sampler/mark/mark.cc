#include "sampler/mark/mark.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "sampler/mark/xenoscope_mark.h"

namespace xenoscope::sampler {

static_assert(XENOSCOPE_MARK_EVENT == trace::kGuestMarkEvent);
static_assert(XENOSCOPE_MARK_BEGIN == static_cast<int>(trace::GuestMarkKind::kBegin));
static_assert(XENOSCOPE_MARK_END == static_cast<int>(trace::GuestMarkKind::kEnd));

absl::Status WriteMark(trace::GuestMarkKind kind, const std::string& text) {
  if (text.size() > XENOSCOPE_MARK_MAX_TEXT) {
    return InvalidError("a mark has at most {} bytes of text, not {}: write a shorter one",
                        XENOSCOPE_MARK_MAX_TEXT, text.size());
  }
  const int device = xenoscope_mark_open();
  if (device == -EACCES || device == -EPERM) {
    return PermissionError("a mark takes a hypercall: run it as root");
  }
  if (device < 0) {
    return PreconditionError(
        "/dev/xen/privcmd cannot be opened ({}): mark works in domains of Xen; in one, run "
        "`modprobe xen-privcmd`",
        std::strerror(-device));
  }
  const int error = xenoscope_mark(device, static_cast<xenoscope_mark_kind>(kind), text.c_str());
  close(device);
  if (error == -EPERM) {
    return PermissionError(
        "Linux lets no program of this guest make hypercalls: load xen-privcmd with "
        "`modprobe xen-privcmd unrestricted=1`");
  }
  return error == 0 ? absl::OkStatus() : ErrnoError(-error, "Xen takes no mark (HVMOP_xentrace)");
}

}  // namespace xenoscope::sampler
