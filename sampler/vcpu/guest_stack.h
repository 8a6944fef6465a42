// Who called the function that a vCPU was found in: the frame pointers on its stack, read through
// its page tables from dom0.
//
//   frame pointer --> [ the caller's frame pointer | where the caller goes on ]
//                       |
//                       +--> [ its caller's | ... ]           up to a 0, or what is no frame
//
// The vCPU runs on meanwhile, and all that is read is the guest's to make up: each step is checked,
// and a chain that cannot be followed, or leads to what is no code, is cut there. What one chain
// may cost is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "sampler/vcpu/guest_memory.h"
#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

// Frames of guests, mapped when they are first asked for, and kept for a while: stacks and page
// tables are the same from poll to poll. A mapping stays good to read whatever the guest does; but
// it holds the frame, also of a domain that has died, and would miss a frame that was exchanged for
// another.
class MappedFrames {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kMaxAge{1000};
  static constexpr size_t kMaxFrames = 512;

  explicit MappedFrames(std::unique_ptr<GuestMemory> memory) : memory_(std::move(memory)) {}
  MappedFrames(const MappedFrames&) = delete;
  MappedFrames& operator=(const MappedFrames&) = delete;
  ~MappedFrames() { Clear(); }

  // The frame's bytes, or null where it cannot be mapped, which `maps` counts too.
  const std::byte* At(DomainId domain, uint64_t frame);
  // Unmaps all when they have been mapped for too long, or are too many.
  void Expire(Clock::time_point now);
  void Clear();
  uint64_t maps() const { return maps_; }

 private:
  std::unique_ptr<GuestMemory> memory_;
  absl::flat_hash_map<std::pair<uint16_t, uint64_t>, const std::byte*> mapped_;
  Clock::time_point since_;
  uint64_t maps_ = 0;
};

class GuestStack {
 public:
  // As deep as perf's chains by default (kernel.perf_event_max_stack).
  static constexpr size_t kMaxCallers = 127;
  // Frames of memory that one chain may map: a stack and its page tables take some five.
  static constexpr uint64_t kMaxMaps = 32;

  explicit GuestStack(MappedFrames& frames) : frames_(frames) {}

  // Sets `callers` to the addresses to which the callers return, innermost first; all are of the
  // sample's mode. False when the chain was cut: it did not end in an outermost frame. 64-bit code
  // only.
  bool Unwind(DomainId domain, const VcpuContext& context, std::vector<Address>& callers);

 private:
  // The 8 bytes at an address that is a multiple of 8.
  std::optional<uint64_t> Word(Address address);
  // Where a page is, and what may be done with it.
  struct PageTranslation {
    uint64_t frame;
    bool executable;
  };
  std::optional<PageTranslation> Walk(Address page);
  // Whether a function can return there, as the page tables say: they mark what is no program.
  bool IsText(Address address);
  const std::byte* Frame(uint64_t frame);

  MappedFrames& frames_;
  DomainId domain_;
  VcpuContext context_;
  uint64_t maps_before_ = 0;
  Address page_ = 0;  // translated last
  const std::byte* page_at_ = nullptr;
};

}  // namespace xenoscope::sampler
