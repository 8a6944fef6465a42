// One sample as a source gave it: where, whose, and what is known of when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/address_space_id.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"

namespace xenoscope::recording {

// The callers of a sampled function, innermost first: those in Xen, then those in the kernel, then
// those in user mode. Points into the file that the sample is of.
class CallChain {
 public:
  CallChain() = default;
  // `addresses` are 8 bytes each, at any alignment; the rest of them is in user mode.
  CallChain(Bytes addresses, uint32_t xen, uint32_t kernel)
      : addresses_(addresses), xen_(xen), kernel_(kernel) {}

  size_t size() const { return addresses_.size() / sizeof(Address); }
  bool empty() const { return addresses_.empty(); }
  Address at(size_t i) const {
    return LoadUnchecked<Address>(addresses_.subspan(i * sizeof(Address)).data());
  }
  Mode ModeAt(size_t i) const {
    if (i < xen_) return Mode::kXen;
    return i < size_t{xen_} + kernel_ ? Mode::kKernel : Mode::kUser;
  }

 private:
  Bytes addresses_;
  uint32_t xen_ = 0;
  uint32_t kernel_ = 0;
};

// A thread of the sampled kernel, as it numbers them; pid 0 is its idle task.
struct Thread {
  uint32_t pid = 0;
  uint32_t tid = 0;
  constexpr auto operator<=>(const Thread&) const = default;
};

struct Sample {
  VcpuRef vcpu;  // in whose buffer it was, or who ran
  Mode mode = Mode::kXen;
  Address address = 0;
  uint16_t event = 0;  // index into RecordingInfo::events
  // When. A source that stamps its samples gives the instant [t, t + 1). xenoprof gives the bracket
  // from the TSC read before the previous drain to the TSC read after the drain that found it; a
  // vCPU that was stopped was so within the one hypercall that read it.
  TscRange when;
  // Its vCPU was stopped within `when` to be read: the address is where it then was, and the mode
  // the guest's, also while Xen was at work for it.
  bool stopped = false;
  // `when` is this sample's own, by the clock of the system that took it of itself: it is not one
  // of a drained buffer's.
  bool timed = false;
  // Where it was taken, when the source knows.
  std::optional<PcpuId> pcpu;
  // Whose it was, when the source knows.
  std::optional<Thread> thread;
  // The number that whoever reads the sample has given to its process's memory.
  AddressSpaceId space;
  CallChain callers;

  constexpr bool IsInstant() const { return when.Length() == 1; }
};

}  // namespace xenoscope::recording
