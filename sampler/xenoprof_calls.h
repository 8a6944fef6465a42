// The two things a xenoprof session asks of Xen: hypercalls and mapped buffers. Behind an interface
// so that the order of a session's operations can be held against a Xen that is made of rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "sampler/xenoprof_abi.h"

namespace xenoscope::sampler {

class XenoprofCalls {
 public:
  virtual ~XenoprofCalls() = default;

  // The operation with its argument (in and out; empty for none). 0 or more, or -errno.
  virtual int Call(XenoprofOp op, std::span<std::byte> argument) = 0;
  // Maps `size` bytes of shared buffers from machine address `address`, read and write.
  virtual absl::StatusOr<std::byte*> Map(uint64_t address, size_t size) = 0;
  // Returns only when the mapping is gone.
  virtual void Unmap(std::byte* at, size_t size) = 0;
};

// Real Xen, by libxencall and libxenforeignmemory. Errors, each with what to do: built without
// Xen's libraries (Unimplemented), /dev/xen/privcmd missing (FailedPrecondition) or closed to us
// (PermissionDenied).
absl::StatusOr<std::unique_ptr<XenoprofCalls>> OpenXenoprofCalls();

}  // namespace xenoscope::sampler
