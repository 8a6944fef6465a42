// Frames of a guest's memory, mapped for reading from dom0, as an interface, so that tests can make
// memory up.
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

  // Maps the frame with this number, as the domain's page tables number frames: machine frames of a
  // PV domain, guest frames of others. The guest may still write to it. Null where Xen refuses:
  // there is no such frame, it is not the domain's, or it is no memory.
  virtual const std::byte* Map(DomainId domain, uint64_t frame) = 0;
  virtual void Unmap(const std::byte* page) = 0;
};

// Opens real guests' memory. Errors: built without Xen's libraries (Unimplemented); those of
// CheckPrivcmd.
absl::StatusOr<std::unique_ptr<GuestMemory>> OpenGuestMemory();

}  // namespace xenoscope::sampler
