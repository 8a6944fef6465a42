// Finds in the trace the time that Xen takes to switch a pCPU from one vCPU to another: from the
// record by which the one that starts is running, until the scheduler (credit2) has put away the
// one that stops. Xen's `current` is the one that stops for most of that time (docs/method.md,
// section 4.5).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::correlate {

struct ContextSwitch {
  TscRange range;
  PcpuId pcpu;
  const VcpuTrack* from = nullptr;
  const VcpuTrack* to = nullptr;
};

class ContextSwitches {
 public:
  // The records of csched2_context_saved, of which the first one ends a switch.
  static constexpr std::array kEvents = {
      trace::Event::kCsched2RunqPos, trace::Event::kCsched2UpdateLoad,
      trace::Event::kCsched2UpdateUnitLoad, trace::Event::kCsched2UpdateRunqLoad};
  // A later record is about something else, such as a wake-up: with core scheduling one pCPU puts
  // away the vCPUs of several. In cycles: some 50 us, twice what the lab's slow emulation needs.
  static constexpr Cycles kMaxLength = Cycles{1} << 17;

  // To be called as TimelineObserver::OnState. O(1) amortised.
  void OnState(const VcpuTrack& vcpu, TimelineState before);
  // Takes a record of kEvents on the pCPU where `current` runs. Returns the switch that it ends, if
  // it ends one. Switches from idle vCPUs are not found: nothing is put away, and samples of these
  // do not exist. O(1).
  [[nodiscard]] std::optional<ContextSwitch> Take(const trace::Record& record,
                                                  const VcpuTrack& current);

 private:
  struct Pcpu {
    const VcpuTrack* from = nullptr;  // the vCPU that stopped last; null: idle, or not known
    const VcpuTrack* to = nullptr;    // the one that has started since; null: none, or long ago
  };
  std::vector<Pcpu> pcpus_;
};

}  // namespace xenoscope::correlate
