// Frames of a guest's memory, mapped for reading from dom0. Behind an interface so that those who
// read can be held against memory that is made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace xenoscope::sampler {

inline constexpr uint64_t kFrameSize = 4096;

class GuestMemory {
 public:
  virtual ~GuestMemory() = default;

  // The frame of this number, as the domain's own page tables number frames: the machine's frames
  // of a PV domain, the guest's of others. The guest goes on writing to it. Null where Xen refuses:
  // there is no such frame, it is not the domain's, or it is no memory.
  virtual const std::byte* Map(DomainId domain, uint64_t frame) = 0;
  virtual void Unmap(const std::byte* page) = 0;
};

// Errors: built without Xen's libraries (Unimplemented); those of CheckPrivcmd.
absl::StatusOr<std::unique_ptr<GuestMemory>> OpenGuestMemory();

}  // namespace xenoscope::sampler
