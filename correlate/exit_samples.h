// Makes samples from the trace alone: a VM exit for an interrupt of the host, or for an NMI, is not
// caused by what the HVM guest does, so that its address is a sample of the guest. Xen and PV
// guests have no such samples. How random the samples are depends on what interrupts
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
  // Begins a pass over `trace`, which outlives this. There are no samples if the vendor is unknown.
  ExitSamples(const trace::TraceFile& trace, trace::Vendor vendor);

  // Returns the next sample, at the guest's last cycle before the exit; null at the end. A sample
  // on a pCPU of which the trace does not say which vCPU runs there belongs to no domain. O(records
  // up to it).
  const recording::Sample* Next() override;

  // The time from the first to the last item of the trace. Complete once Next has returned null.
  [[nodiscard]] TscRange traced() const { return traced_; }

 private:
  void Take(const trace::Item& item);
  void TakeExit(const trace::Record& record);
  void TakeNmi(const trace::Record& record);
  [[nodiscard]] recording::Sample SampleOf(const trace::Record& exit) const;

  trace::Vendor vendor_;
  trace::OrderedStream stream_;
  TimelineObserver null_observer_;
  Timeline timeline_;  // who runs where
  // VMX: the last exit, if it is an NMI or an exception; a record of the same instant says which.
  std::optional<recording::Sample> maybe_nmi_;
  recording::Sample ready_;
  bool is_ready_ = false;
  TscRange traced_;
  bool begun_ = false;
};

}  // namespace xenoscope::correlate
