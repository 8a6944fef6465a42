// What Xen did for threads: their VM exits by reason, with their time, and a PV guest's hypercalls
// and traps, of which the trace has the begin only.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/tsc.h"
#include "correlate/exit_contents.h"
#include "trace/record.h"

namespace xenoscope::guests {

enum class EntryKind : uint8_t {
  kExit,
  kResume,  // on the way back into the guest: the exit was not seen
  // What a PV guest's vCPU enters Xen for. Its time is part of the guest's.
  kHypercall,
  kSubcall,  // of a multicall
  kTrap,
  kPageFault,
  kEmulation,
  kOthers,  // reasons for which there was no room
};

// Why a vCPU entered Xen.
struct XenReason {
  EntryKind kind = EntryKind::kExit;
  bool nested = false;  // kExit: of a nested guest
  // kExit: the vendor's exit reason; kHypercall, kSubcall, kTrap: the number.
  uint32_t reason = 0;
  // kExit: what the handler recorded.
  correlate::ExitKind exit_kind = correlate::ExitKind::kNoHandler;
  uint64_t number = 0;  // ExitContents::number

  constexpr auto operator<=>(const XenReason&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const XenReason& entry) {
    return H::combine(std::move(h), entry.kind, entry.nested, entry.reason, entry.exit_kind,
                      entry.number);
  }
};

// The VM exit that Xen handles.
struct HandledExit {
  uint64_t number = 0;  // VcpuTrack::exit; 0: the exit was not seen
  bool nested = false;
  uint32_t reason = 0;  // the vendor's
};

struct XenTime {
  size_t thread = 0;  // index
  XenReason reason;
  // Times that the thread entered Xen; of exits that another one continues, only the first one's.
  uint64_t entries = 0;
  Cycles time = 0;  // 0: not known, of a PV guest
};

// The times of a domain's threads in Xen, by reason.
class XenTimes {
 public:
  explicit XenTimes(size_t cpus) : open_(cpus) {}

  // Xen handled the exit of the CPU for `time` cycles while the thread was on it. O(1) amortised.
  void Handled(size_t cpu, const HandledExit& exit, size_t thread, Cycles time);
  // The handler of the CPU's exit has recorded something.
  void TakeRecord(size_t cpu, uint64_t exit, const trace::Record& record);
  // A PV guest's thread has entered Xen.
  void Entered(size_t thread, const XenReason& reason) { Add(thread, reason, 1, 0); }
  // Ends the exits that are open.
  void Finish();
  // Returns the sums in the order of threads and reasons. O(n log n).
  [[nodiscard]] std::vector<XenTime> All() const;

  // Where there are this many sums, reasons that are new are kOthers.
  static constexpr size_t kMaxSums = size_t{1} << 18;

 private:
  // An exit is counted when the next one begins: its last record may come after the vCPU has left
  // its pCPU.
  struct OpenExit {
    correlate::ExitContents contents;
    std::vector<std::pair<size_t, Cycles>> threads;  // and their time in it
    bool is_counted = false;
  };
  void Open(OpenExit& open, uint64_t exit);
  void Close(OpenExit& open);
  void Add(size_t thread, XenReason reason, uint64_t entries, Cycles time);

  struct Sum {
    uint64_t entries = 0;
    Cycles time = 0;
  };
  std::vector<OpenExit> open_;  // by CPU
  absl::flat_hash_map<std::pair<size_t, XenReason>, Sum> sums_;
};

}  // namespace xenoscope::guests
