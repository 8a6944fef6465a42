// The stack of a vCPU, which dom0 reads through the guest's page tables: a piece of it as it is,
// from which reports unwind a kernel; and the callers of the function that the vCPU was found in,
// by frame pointers.
//
//   frame pointer --> [ the caller's frame pointer | where the caller goes on ]
//                       |
//                       +--> [ its caller's | ... ]           up to a 0, or what is no frame
//
// The vCPU runs on meanwhile, and the guest may put anything there. So each step is checked, and a
// chain that cannot be followed, or leads to what is no code, is cut there. The cost of one chain
// is bounded.
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

// A cache of mapped frames of guests: stacks and page tables are the same from poll to poll. A
// mapping stays readable whatever the guest does; but it holds the frame, even after the domain has
// ended, and does not notice when the guest exchanges the frame for another.
class MappedFrames {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kMaxAge{1000};
  static constexpr size_t kMaxFrames = 512;

  explicit MappedFrames(std::unique_ptr<GuestMemory> memory) : memory_(std::move(memory)) {}
  MappedFrames(const MappedFrames&) = delete;
  MappedFrames& operator=(const MappedFrames&) = delete;
  ~MappedFrames() { Clear(); }

  // Returns the frame's bytes, or null where it cannot be mapped, which `maps` counts too.
  const std::byte* At(DomainId domain, uint64_t frame);
  // Unmaps all frames when they have been mapped for too long, or are too many.
  void Expire(Clock::time_point now);
  void Clear();
  [[nodiscard]] uint64_t maps() const { return maps_; }

 private:
  std::unique_ptr<GuestMemory> memory_;
  absl::flat_hash_map<std::pair<uint16_t, uint64_t>, const std::byte*> mapped_;
  Clock::time_point since_;
  uint64_t maps_ = 0;
};

// A reader of stacks.
class GuestStack {
 public:
  // Limit of callers, as perf's by default (kernel.perf_event_max_stack).
  static constexpr size_t kMaxCallers = 127;
  // Limit of frames of memory that one chain may map: a stack and its page tables take about five.
  static constexpr uint64_t kMaxMaps = 32;
  // Limit of the bytes of a piece: the size of the stacks of a kernel (THREAD_SIZE of Linux for
  // x86-64), which begin at multiples of it.
  static constexpr uint64_t kMaxPieceBytes = 16384;

  explicit GuestStack(MappedFrames& frames) : frames_(frames) {}

  // Sets `callers` to the addresses to which the callers return, innermost first; all are of the
  // sample's mode. False when the chain was cut, that is, did not end in an outermost frame. For
  // 64-bit code only.
  bool Unwind(DomainId domain, const VcpuContext& context, std::vector<Address>& callers);

  // Sets `piece` to the words of the stack from the stack pointer on: up to a page that the guest
  // does not map, which Linux has behind each of a kernel's stacks, or kMaxPieceBytes. Empty: there
  // is none. The guest may have changed some of them since the vCPU was stopped.
  void Read(DomainId domain, const VcpuContext& context, std::vector<uint64_t>& piece);

 private:
  void Begin(DomainId domain, const VcpuContext& context);
  // Returns the 8 bytes at an address that is a multiple of 8.
  std::optional<uint64_t> Word(Address address);
  // The place of a page, and what its page tables allow.
  struct PageTranslation {
    uint64_t frame;
    bool executable;
  };
  std::optional<PageTranslation> Walk(Address page);
  // Returns whether the page tables allow a function to return there.
  bool IsText(Address address);
  const std::byte* Frame(uint64_t frame);

  MappedFrames& frames_;
  DomainId domain_;
  VcpuContext context_;
  uint64_t maps_before_ = 0;
  Address page_ = 0;  // address that was translated last
  const std::byte* page_at_ = nullptr;
};

}  // namespace xenoscope::sampler
