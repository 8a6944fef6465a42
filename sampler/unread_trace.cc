#include "sampler/unread_trace.h"

#include <cerrno>
#include <cstdint>
#include <memory>

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers do not say it themselves
#include <xen/xen.h>
#include <xencall.h>
#include <xenevtchn.h>
}

namespace xenoscope::sampler {
namespace {

// What of __HYPERVISOR_sysctl it takes (xen/include/public/sysctl.h, Xen 4.8 to 4.22): a version
// that changes from release to release, and a layout that has not.
constexpr uint32_t kTbufOp = 2;
constexpr uint32_t kTbufDisable = 5;
constexpr uint32_t kFirstVersion = 0x0e;  // XEN_SYSCTL_INTERFACE_VERSION of Xen 4.8
constexpr uint32_t kLastVersion = 0x3f;
struct Sysctl {
  uint32_t op;
  uint32_t version;
  uint32_t tbuf_command;
  uint32_t rest[31];
};
static_assert(sizeof(Sysctl) == 8 + 128);

// Xen announces records by one interrupt, which one listener can have at a time.
bool SomebodyListens() {
  const std::unique_ptr<xenevtchn_handle, int (*)(xenevtchn_handle*)> events(
      xenevtchn_open(nullptr, 0), xenevtchn_close);
  return events == nullptr || xenevtchn_bind_virq(events.get(), VIRQ_TBUF) < 0;
}

}  // namespace

void EndUnreadTrace() {
  if (SomebodyListens()) return;
  const std::unique_ptr<xencall_handle, int (*)(xencall_handle*)> calls(xencall_open(nullptr, 0),
                                                                        xencall_close);
  if (calls == nullptr) return;
  auto* const op = static_cast<Sysctl*>(xencall_alloc_buffer(calls.get(), sizeof(Sysctl)));
  if (op == nullptr) return;
  for (uint32_t version = kFirstVersion; version <= kLastVersion; ++version) {
    *op = {};
    op->op = kTbufOp;
    op->version = version;
    op->tbuf_command = kTbufDisable;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    const auto address = reinterpret_cast<uint64_t>(op);
    // Xen looks at the version first, and refuses every other than its own.
    if (xencall1(calls.get(), __HYPERVISOR_sysctl, address) >= 0 || errno != EACCES) break;
  }
  xencall_free_buffer(calls.get(), op);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {
void EndUnreadTrace() {}
}  // namespace xenoscope::sampler

#endif
