// The two services of Xen that a xenoprof session needs: hypercalls and mapped buffers; as an
// interface, so that tests can check the order of operations with a simulated Xen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "sampler/xenoprof/xenoprof_abi.h"

namespace xenoscope::sampler {

class XenoprofCalls {
 public:
  virtual ~XenoprofCalls() = default;

  // Calls the operation with its argument (in and out; empty for none). Returns 0 or more, or
  // -errno.
  virtual int Call(XenoprofOp op, std::span<std::byte> argument) = 0;
  // Maps `size` bytes of shared buffers from machine address `address`, read and write.
  virtual absl::StatusOr<std::byte*> Map(uint64_t address, size_t size) = 0;
  // Unmaps them; returns only when the mapping is gone.
  virtual void Unmap(std::byte* at, size_t size) = 0;

  // Call the operation without an argument, or with this one.
  int Call(XenoprofOp op) { return Call(op, std::span<std::byte>()); }
  template <typename T>
  int CallWith(XenoprofOp op, T& argument) {
    return Call(op, std::as_writable_bytes(std::span(&argument, 1)));
  }
};

// xenoprof's description of this machine, and of the calling domain.
struct XenoprofCpu {
  std::string type;  // "x86-64/family15h"
  uint32_t counters = 0;
  bool is_primary = false;  // whether the calling domain is the primary one, which leads sessions
};

// Calls the first operation of any session. Errors, each with what to do: no xenoprof in this Xen,
// CPU not supported (Unimplemented), not allowed (PermissionDenied).
absl::StatusOr<XenoprofCpu> InitXenoprof(XenoprofCalls& calls);

enum class XenoprofRole : uint8_t { kInitiator, kActive };

// Opens real Xen, by libxencall and libxenforeignmemory. Errors, each with what to do: built
// without Xen's libraries (Unimplemented), /dev/xen/privcmd missing (FailedPrecondition) or not
// permitted (PermissionDenied).
absl::StatusOr<std::unique_ptr<XenoprofCalls>> OpenXenoprofCalls(XenoprofRole role);

}  // namespace xenoscope::sampler
