// The memory of a guest as one of its vCPUs sees it: dom0 reads it through the guest's page tables.
// The guest may put anything there at any time, so that each word is read once.
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
#include "base/mode.h"
#include "sampler/vcpu/guest_memory.h"
#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

// A cache of mapped frames of guests: stacks and page tables are the same from poll to poll, and to
// map one costs more than to read it. A mapping stays readable whatever the guest does; but it
// holds the frame, even after the domain has ended, and does not notice when the guest exchanges
// the frame for another (ballooning). So it has a limited age.
class MappedFrames {
 public:
  using Clock = std::chrono::steady_clock;
  // Time from one check of what is mapped to the next one.
  static constexpr std::chrono::milliseconds kPeriod{1000};
  // Limits, in periods, of how long a frame is mapped, and of how long it is mapped without use.
  static constexpr uint64_t kMaxAge = 10;
  static constexpr uint64_t kMaxUnused = 3;
  static constexpr size_t kMaxFrames = 2048;

  explicit MappedFrames(std::unique_ptr<GuestMemory> memory) : memory_(std::move(memory)) {}
  MappedFrames(const MappedFrames&) = delete;
  MappedFrames& operator=(const MappedFrames&) = delete;
  ~MappedFrames() { Clear(); }

  // Returns the frame's bytes, or null where it cannot be mapped, which `maps` counts too.
  const std::byte* At(DomainId domain, uint64_t frame);
  // When a period has passed, or frames are too many: unmaps those that are old or unused, and
  // forgets all entries. Returns whether it did.
  bool Expire(Clock::time_point now);
  // Unmaps all frames of a domain.
  void Drop(DomainId domain);
  void Clear();
  // The entry of a domain's top page tables with this index, in the upper half, which is the same
  // in all its kernel's address spaces: with it no process's own top table has to be mapped. Linux
  // makes it when it boots. 0: not known.
  uint64_t& KernelEntry(DomainId domain, uint64_t index) {
    return kernel_entries_[{domain.value, index}];
  }
  [[nodiscard]] uint64_t maps() const { return maps_; }

 private:
  struct Mapping {
    const std::byte* page = nullptr;  // null: it cannot be mapped
    uint64_t since = 0;               // number of the period
    uint64_t used = 0;                // number of the period
  };
  using Key = std::pair<uint16_t, uint64_t>;  // domain, and frame or index

  template <typename Condition>
  void UnmapIf(Condition condition);

  std::unique_ptr<GuestMemory> memory_;
  absl::flat_hash_map<Key, Mapping> mapped_;
  absl::flat_hash_map<Key, uint64_t> kernel_entries_;
  uint64_t period_ = 0;
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
  // Appends the words from an address that is a multiple of 8 to the end of its page. False: it is
  // not present.
  bool AppendWords(Address address, std::vector<uint64_t>& words);
  // `page` is a multiple of kFrameSize. Of programs, what the top table forbids does not count:
  // Linux forbids its kernel there to execute any of theirs (page table isolation).
  Translation At(Address page);

 private:
  const std::byte* Frame(uint64_t frame);
  // Returns the entry of the top table for the page; 0: it is not known, or not present.
  uint64_t TopEntry(Address page, int shift);
  // Returns where the page is mapped; null: it is not present.
  const std::byte* PageAt(Address page);

  MappedFrames& frames_;
  DomainId domain_;
  bool in_kernel_ = false;
  uint64_t root_ = 0;  // frame of the top table
  bool five_levels_ = false;
  uint64_t maps_before_ = 0;
  uint64_t max_maps_ = 0;
  Address page_ = 0;  // address that was translated last
  const std::byte* page_at_ = nullptr;
};

}  // namespace xenoscope::sampler
