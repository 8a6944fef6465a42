// The memory of a guest as one of its vCPUs sees it: dom0 reads it through the guest's page tables.
// The guest may put anything there at any time, so that each word is read once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/mode.h"
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
  static constexpr size_t kMaxFrames = 2048;

  explicit MappedFrames(std::unique_ptr<GuestMemory> memory) : memory_(std::move(memory)) {}
  MappedFrames(const MappedFrames&) = delete;
  MappedFrames& operator=(const MappedFrames&) = delete;
  ~MappedFrames() { Clear(); }

  // Returns the frame's bytes, or null where it cannot be mapped, which `maps` counts too.
  const std::byte* At(DomainId domain, uint64_t frame);
  // Unmaps all frames when they have been mapped for too long, or are too many. Returns whether it
  // did.
  bool Expire(Clock::time_point now);
  void Clear();
  [[nodiscard]] uint64_t maps() const { return maps_; }

 private:
  std::unique_ptr<GuestMemory> memory_;
  absl::flat_hash_map<std::pair<uint16_t, uint64_t>, const std::byte*> mapped_;
  Clock::time_point since_;
  uint64_t maps_ = 0;
};

// A reader of that memory.
class GuestPages {
 public:
  // What the page tables say of a page.
  struct Translation {
    bool present = false;
    bool executable = false;
    uint64_t frame = 0;
    uint64_t size = kFrameSize;  // bytes of the aligned range about which one entry says this
  };

  explicit GuestPages(MappedFrames& frames) : frames_(frames) {}

  // Turns to what a vCPU with this context sees. From now on up to the next call, at most
  // `max_maps` frames are mapped; then all else is unknown, as if it were not present.
  void Begin(DomainId domain, const VcpuContext& context, uint64_t max_maps);

  // Returns the 8 bytes at an address that is a multiple of 8.
  std::optional<uint64_t> Word(Address address);
  // `page` is a multiple of kFrameSize. Of programs, what the top table forbids does not count:
  // Linux forbids its kernel there to execute any of theirs (page table isolation).
  Translation At(Address page);

 private:
  const std::byte* Frame(uint64_t frame);

  MappedFrames& frames_;
  DomainId domain_;
  uint64_t root_ = 0;  // frame of the top table
  bool five_levels_ = false;
  uint64_t maps_before_ = 0;
  uint64_t max_maps_ = 0;
  Address page_ = 0;  // address that was translated last
  const std::byte* page_at_ = nullptr;
};

}  // namespace xenoscope::sampler
