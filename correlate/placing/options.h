// What the placer is asked to tell apart, and what it must know of the recording.
#pragma once

#include <bitset>

#include "base/mode.h"
#include "base/tsc.h"
#include "correlate/nmi_matching.h"
#include "correlate/thread_source.h"
#include "recording/info.h"
#include "trace/cursor.h"
#include "trace/names.h"

namespace xenoscope::correlate {

struct PlacingOptions {
  // The time [begin, end) in which samples were taken; only this time of the trace is given to
  // PlacingObserver::OnTraced.
  TscRange sampled;
  // The length of the longest bracket, in cycles: how long the timeline has to be remembered.
  Cycles longest_bracket = 0;
  // All samples are instants of the trace itself (ExitSamples). Each is placed as soon as the trace
  // has shown it, and no more is kept of each vCPU than its last intervals.
  bool of_trace = false;
  trace::Vendor vendor = trace::Vendor::kUnknown;
  LoggedRip logged_rip = LoggedRip::kOfExit;
  // AMD: the address in Xen of the STGI that ends its handling of a #VMEXIT; 0: not known.
  Address stgi = 0;
  // The cycles that the transitions of one stay in a guest take, until enough samples say it.
  double cycles_per_transition = 1000;
  // The profile's own event comes equally often in all time of all vCPUs.
  bool uniform_in_time = true;
  // The order in which the placer gets records. kCrossing and kGroups cost less on many pCPUs, but
  // do not agree with by_waiting and threads.
  trace::RecordOrder order = trace::RecordOrder::kTime;
  bool by_subreason = false;  // contexts say what exits were about
  // Samples that wait for what an exit was about are looked at again after so many cycles (about
  // 0.1 ms).
  Cycles settle_again = Cycles{1} << 18;
  bool by_waiting = false;  // contexts say which vCPUs waited for the pCPU
  bool by_wakeup = false;   // contexts say what woke the vCPU
  // Says which threads vCPUs ran, and contexts then say it; null: they do not. It outlives the
  // placer, and is used by it alone.
  ThreadSource* threads = nullptr;
  // Events whose samples are placed beside those of the profile's own event, by number: their modes
  // are not those of time.
  std::bitset<recording::kMaxRecordingEvents> beside{};
};

}  // namespace xenoscope::correlate
