// What one vCPU did, as far back as the longest bracket reaches, and what is known of its last VM
// exit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/mode.h"
#include "base/sketch.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/exit_contents.h"
#include "correlate/history_queue.h"
#include "correlate/nmi_matching.h"
#include "correlate/placing/lost_time_part.h"
#include "correlate/placing/traced_time.h"
#include "correlate/placing/transition_sums.h"
#include "correlate/timeline.h"
#include "correlate/timeline_history.h"
#include "correlate/wakeup.h"

namespace xenoscope::correlate {

// The parts of an exit that ended before a record said what the exit is about. The vCPU waits for
// its device model, and the record of what it reads comes when it has the answer.
struct UnsettledExit {
  struct Part {
    TscRange range;
    Context context;
    VcpuRef vcpu;
    PcpuId pcpu;
    Cycles sampled = 0;  // cycles of the range in which samples were taken
  };
  uint64_t exit = 0;        // ExitContents::exit
  std::vector<Part> parts;  // empty: all exits are settled
};

struct VcpuHistory {
  TimelineHistory intervals;
  HistoryQueue<ExitMark> exits;
  HistoryQueue<Tsc> stops;  // when it went offline
  Wakeup wakeup;
  ExitContents contents;  // what its last exit was about, where exits are told apart by that
  UnsettledExit unsettled;

  // The last exit of the guest, and that of its nested guests, with no loss since, for the mark of
  // the next one.
  struct LastExit {
    bool known = false;
    uint32_t reason = 0;
    Address rip = 0;
  };
  std::array<LastExit, 2> last_exits{};

  // When the vCPU last began to wait for a pCPU, and whether it was woken then, not preempted.
  Tsc runnable_since;
  bool was_woken = false;

  TscRange switched;  // the last time in which Xen switched to it

  Tsc nmi_matched_until;  // NMI exits before this have had their sample or will not have one

  // Cycles up to now, for the weight of lost time.
  Cycles known = 0;                                // in any known state
  std::array<Cycles, kContextKinds> by_context{};  // in each
  Cycles lost_before = 0;  // Losses::LostTimeUntil when the vCPU became lost
  LostTimePart lost_part;  // what its samples say of the weight of lost time

  VcpuTransitions transitions;
  Sketch stays;  // lengths of its stays in the guest

  TracedTime traced;  // what the observer has not been given yet

  // Returns the first of its exits at or after `t`. O(log exits).
  [[nodiscard]] HistoryQueue<ExitMark>::Iterator FirstExitSince(Tsc t) const;
  // Returns the part of lost time that counts for samples of the mode: what its samples say, and as
  // far as these are few, the part of known time that the vCPU spends in contexts that agree with
  // the mode. In [0, 1].
  [[nodiscard]] double PartOfLost(Mode mode, const SampleRate& rate) const;
  // Returns when the vCPU was stopped, if the trace saw it stop within the bracket.
  [[nodiscard]] std::optional<Tsc> StopWithin(const VcpuTrack& track, TscRange bracket) const;
  // Adds the exit that `track` has just begun, and returns it: the caller sets whether an NMI was
  // its cause, and the context in which it is handled. O(1).
  ExitMark& AddExit(const VcpuTrack& track);
  // Returns the part of a segment of the vCPU in which Xen did not switch to it.
  [[nodiscard]] TscRange WithoutSwitch(TscRange segment) const {
    if (segment.begin == switched.begin) segment.begin = std::min(segment.end, switched.end);
    return segment;
  }
  // Forgets intervals, exits and stops that ended before `t`.
  void DropBefore(Tsc t);
};

// Returns the context that the exit ended.
[[nodiscard]] Context GuestBefore(const ExitMark& exit);

}  // namespace xenoscope::correlate
