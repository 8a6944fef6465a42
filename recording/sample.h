// One sample as a source gave it: the address, the vCPU, and what is known of its time.
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
// those in user mode. It points into the file of the sample.
class CallChain {
 public:
  CallChain() = default;
  // `addresses` are 8 bytes each, at any alignment. `xen` and `kernel` are numbers of callers; the
  // rest are in user mode.
  CallChain(Bytes addresses, uint32_t xen, uint32_t kernel)
      : addresses_(addresses), xen_(xen), kernel_(kernel) {}

  [[nodiscard]] size_t size() const { return addresses_.size() / sizeof(Address); }
  [[nodiscard]] bool empty() const { return addresses_.empty(); }
  [[nodiscard]] Address at(size_t i) const {
    return LoadUnchecked<Address>(addresses_.subspan(i * sizeof(Address)).data());
  }
  [[nodiscard]] Mode ModeAt(size_t i) const {
    if (i < xen_) return Mode::kXen;
    return i < size_t{xen_} + kernel_ ? Mode::kKernel : Mode::kUser;
  }

 private:
  Bytes addresses_;
  uint32_t xen_ = 0;
  uint32_t kernel_ = 0;
};

// A thread as its kernel numbers it; pid 0 is the idle task.
struct Thread {
  uint32_t pid = 0;
  uint32_t tid = 0;
  constexpr auto operator<=>(const Thread&) const = default;
};

struct Sample {
  VcpuRef vcpu;  // vCPU whose buffer held the sample, or that ran
  Mode mode = Mode::kXen;
  Address address = 0;
  uint16_t event = 0;  // index into RecordingInfo::events
  // The half-open range of time of the sample, in cycles. A source that stamps its samples gives
  // the instant [t, t + 1). xenoprof gives the range from the TSC read before the previous drain to
  // the TSC read after the drain that found the sample. For a vCPU that was stopped it is the one
  // hypercall that read it.
  TscRange when;
  // Whether the vCPU was stopped within `when` to be read: the address is where it stood then, and
  // the mode is the guest's even while Xen worked for it.
  bool stopped = false;
  // Whether `when` is the sample's own time, by the clock of the system that sampled itself, and
  // not the range of a drain.
  bool timed = false;
  // The pCPU, when the source knows it.
  std::optional<PcpuId> pcpu;
  // The thread, when the source knows it.
  std::optional<Thread> thread;
  // The number of the process's address space, which the reader of the sample sets.
  AddressSpaceId space;
  CallChain callers;

  [[nodiscard]] constexpr bool IsInstant() const { return when.Length() == 1; }
};

}  // namespace xenoscope::recording
