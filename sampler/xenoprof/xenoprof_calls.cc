#include "sampler/xenoprof/xenoprof_calls.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace xenoscope::sampler {

absl::StatusOr<XenoprofCpu> InitXenoprof(XenoprofCalls& calls) {
  XenoprofInit init;
  const int result = calls.CallWith(XenoprofOp::kInit, init);
  switch (-result) {
    case ENOSYS:
      return UnimplementedError(
          "this Xen has no xenoprof for this domain: Xen 4.18 and later are built without it by "
          "default, 4.22 removed it, and a PVH domain never has it");
    case ENODEV:
      return UnimplementedError(
          "xenoprof does not support this processor (AMD families 0xf to 0x16, Intel family 6)");
    case EPERM:
    case EACCES:
      return PermissionError("Xen does not let this domain profile");
    default:
      if (result < 0) return ErrnoError(-result, "xenoprof does not start");
  }
  return XenoprofCpu{
      std::string(init.cpu_type.data(), strnlen(init.cpu_type.data(), init.cpu_type.size())),
      static_cast<uint32_t>(std::max(init.num_events, 0)), init.is_primary != 0};
}

}  // namespace xenoscope::sampler

#ifdef XENOSCOPE_HAVE_XEN

#include <sys/mman.h>
extern "C" {  // Xen's headers lack it
#include <xencall.h>
#include <xenforeignmemory.h>
}

#include <vector>

#include "base/hypercalls.h"
#include "base/ids.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {
namespace {

constexpr size_t kPageSize = 4096;

class LiveCalls final : public XenoprofCalls {
 public:
  LiveCalls(xencall_handle* calls, xenforeignmemory_handle* memory)
      : calls_(calls), memory_(memory) {}
  LiveCalls(const LiveCalls&) = delete;
  LiveCalls& operator=(const LiveCalls&) = delete;
  ~LiveCalls() override {
    xenforeignmemory_close(memory_);
    xencall_close(calls_);
  }

  int Call(XenoprofOp op, std::span<std::byte> argument) override {
    void* bounce = nullptr;  // arguments of hypercalls must stay in memory
    if (!argument.empty()) {
      bounce = xencall_alloc_buffer(calls_, argument.size());
      if (bounce == nullptr) return -ENOMEM;
      std::memcpy(bounce, argument.data(), argument.size());
    }
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    const auto address = reinterpret_cast<uint64_t>(bounce);
    const int result = xencall2(calls_, hypercall::kXenoprofOp, static_cast<uint64_t>(op), address);
    const int error = errno;
    if (bounce != nullptr) {
      std::memcpy(argument.data(), bounce, argument.size());
      xencall_free_buffer(calls_, bounce);
    }
    return result < 0 ? -error : result;
  }

  absl::StatusOr<std::byte*> Map(uint64_t address, size_t size) override {
    const size_t pages = (size + kPageSize - 1) / kPageSize;
    std::vector<xen_pfn_t> frames(pages);
    std::vector<int> errors(pages);
    for (size_t i = 0; i < pages; ++i) frames[i] = address / kPageSize + i;
    // Xen shares the pages with the caller, who must not name itself by its number.
    void* at = xenforeignmemory_map(memory_, kDomSelf.value, PROT_READ | PROT_WRITE, pages,
                                    frames.data(), errors.data());
    if (at == nullptr) return ErrnoError(errno, "cannot map {} pages of sample buffers", pages);
    return static_cast<std::byte*>(at);
  }

  void Unmap(std::byte* at, size_t size) override {
    xenforeignmemory_unmap(memory_, at, (size + kPageSize - 1) / kPageSize);
  }

 private:
  xencall_handle* calls_;
  xenforeignmemory_handle* memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<XenoprofCalls>> OpenXenoprofCalls(XenoprofRole role) {
  XENOSCOPE_RETURN_IF_ERROR(role == XenoprofRole::kInitiator ? CheckPrivcmd() : CheckOwnPrivcmd());
  xencall_handle* calls = xencall_open(nullptr, 0);
  if (calls == nullptr) return ErrnoError(errno, "cannot open /dev/xen/privcmd");
  xenforeignmemory_handle* memory = xenforeignmemory_open(nullptr, 0);
  if (memory == nullptr) {
    const int error = errno;
    xencall_close(calls);
    return ErrnoError(error, "cannot open /dev/xen/privcmd to map memory");
  }
  return std::make_unique<LiveCalls>(calls, memory);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<XenoprofCalls>> OpenXenoprofCalls(XenoprofRole /*role*/) {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}

}  // namespace xenoscope::sampler

#endif
