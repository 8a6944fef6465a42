// Samples from the trace alone: where an HVM guest was when an interrupt of the host, or an NMI,
// took the processor from it. Such a VM exit is not the guest's doing, so its address is a sample
// of the guest; of Xen and of PV guests there are none. How random it is, is up to what interrupts
// (docs/method.md, section 7).
#pragma once

#include <cstdint>
#include <optional>

#include "correlate/placing/placed_sample.h"
#include "correlate/timeline.h"
#include "recording/sample.h"
#include "trace/names.h"
#include "trace/ordered_stream.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {

class ExitSamples final : public SampleSource {
 public:
  // A pass of its own over `trace`, which outlives it. Of an unknown vendor there are no samples.
  ExitSamples(const trace::TraceFile& trace, trace::Vendor vendor);

  // The next sample, at the last cycle of the guest before the exit. One on a pCPU of which the
  // trace does not say who runs there belongs to no domain. O(records up to it).
  const recording::Sample* Next() override;

  // From the first to the last item of the trace. Complete once Next has returned nothing.
  TscRange traced() const { return traced_; }

 private:
  void Take(const trace::Item& item);
  void TakeExit(const trace::Record& record);
  void TakeNmi(const trace::Record& record);
  recording::Sample SampleOf(const trace::Record& exit) const;

  trace::Vendor vendor_;
  trace::OrderedStream stream_;
  TimelineObserver null_observer_;
  Timeline timeline_;  // who runs where
  // VMX: the last exit, when it is an NMI or an exception; a record of the same instant tells.
  std::optional<recording::Sample> maybe_nmi_;
  recording::Sample ready_;
  bool is_ready_ = false;
  TscRange traced_;
  bool begun_ = false;
};

}  // namespace xenoscope::correlate
