#include "sampler/xenoprof/xenoprof_calls.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hypercalls.h"
#include "base/ids.h"
#include "sampler/xen/foreign_memory.h"
#include "sampler/xen/privcmd.h"
#include "sampler/xen/xencall_handle.h"

namespace xenoscope::sampler {
namespace {

constexpr size_t kPageSize = 4096;

class LiveCalls final : public XenoprofCalls {
 public:
  LiveCalls(std::unique_ptr<XencallHandle> calls, std::unique_ptr<ForeignMemory> memory)
      : calls_(std::move(calls)), memory_(std::move(memory)) {}

  int Call(XenoprofOp op, std::span<std::byte> argument) override {
    if (argument.size() > bounce_.size()) {  // arguments of hypercalls must stay in memory
      auto* const memory = static_cast<std::byte*>(calls_->Allocate(argument.size()));
      if (memory == nullptr) return -ENOMEM;
      bounce_ = {memory, argument.size()};
    }
    std::ranges::copy(argument, bounce_.begin());
    const uint64_t address = argument.empty() ? 0 : XenAddressOf(bounce_.data());
    const int result = calls_->Call(hypercall::kXenoprofOp, static_cast<uint64_t>(op), address);
    std::ranges::copy(bounce_.first(argument.size()), argument.begin());
    return result;
  }

  absl::StatusOr<std::byte*> Map(uint64_t address, size_t size) override {
    const size_t pages = (size + kPageSize - 1) / kPageSize;
    std::vector<uint64_t> frames(pages);
    std::iota(frames.begin(), frames.end(), address / kPageSize);
    // Xen shares the pages with the caller, who must not name itself by its number.
    std::byte* const at = memory_->Map(kDomSelf, PROT_READ | PROT_WRITE, frames);
    if (at == nullptr) return ErrnoError(errno, "cannot map {} pages of sample buffers", pages);
    return at;
  }

  void Unmap(std::byte* at, size_t size) override {
    memory_->Unmap(at, (size + kPageSize - 1) / kPageSize);
  }

 private:
  std::unique_ptr<XencallHandle> calls_;
  std::unique_ptr<ForeignMemory> memory_;
  std::span<std::byte> bounce_;  // for the largest argument until now
};

}  // namespace

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

absl::StatusOr<std::unique_ptr<XenoprofCalls>> OpenXenoprofCalls(XenoprofRole role) {
  XENOSCOPE_RETURN_IF_ERROR(role == XenoprofRole::kInitiator ? CheckPrivcmd() : CheckOwnPrivcmd());
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<XencallHandle> calls, XencallHandle::Open());
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<ForeignMemory> memory, ForeignMemory::Open());
  return std::make_unique<LiveCalls>(std::move(calls), std::move(memory));
}

}  // namespace xenoscope::sampler
