// Makes samples from the trace alone: a VM exit for an interrupt of the host, or for an NMI, is not
// caused by what the HVM guest does, so that its address is a sample of the guest. Xen and PV
// guests have no such samples. How random the samples are depends on what interrupts
// (docs/method.md, section 7).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "base/tsc.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/timeline.h"
#include "recording/sample.h"
#include "trace/cursor.h"
#include "trace/names.h"
#include "trace/ordered_stream.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {

// The samples in the records that it is given.
class ExitSamples final : public SampleSource {
 public:
  // There are no samples if the vendor is unknown.
  explicit ExitSamples(trace::Vendor vendor) : vendor_(vendor) {}

  // Whether records of the event are of interest.
  [[nodiscard]] static bool Handles(trace::Event event);
  // Takes the next record. Those of a pCPU come in the order of time; `running` is the vCPU that
  // runs there, or null. O(1).
  void Take(const trace::Record& record, const VcpuTrack* running);

  // Returns the next sample of the records taken so far, at the guest's last cycle before the exit,
  // in the order of time and pCPU; null: there is none yet. Samples of later records must be of
  // later times. A sample on a pCPU of which the trace does not say which vCPU runs there belongs
  // to no domain. O(log samples) amortised.
  const recording::Sample* Next() override;
  // Whether there is one.
  [[nodiscard]] bool has_next() const { return left_ > 0; }

 private:
  void TakeExit(const trace::Record& record, const VcpuTrack* running);
  void TakeNmi(const trace::Record& record);
  void Add(const recording::Sample& sample);

  trace::Vendor vendor_;
  // VMX: the last exit, if it is an NMI or an exception; a record of the same instant says which.
  std::optional<recording::Sample> maybe_nmi_;
  std::deque<recording::Sample> samples_;  // keeps its entries where they are
  size_t given_ = 0;                       // so many of them
  size_t left_ = 0;                        // so many are not given
  bool sorted_ = true;                     // the others are in order
};

// The samples of a whole trace, in a pass of their own.
class ExitSampleReader final : public SampleSource {
 public:
  // `trace` outlives this.
  ExitSampleReader(const trace::TraceFile& trace, trace::Vendor vendor);

  // Returns the next sample; null at the end.
  const recording::Sample* Next() override;

  // Those of trace::RecordHandler.
  void TakeRecord(const trace::Record& record, const trace::AnyTarget& target);
  void TakeNonRecord(const trace::Item& item) { timeline_.TakeNonRecord(item); }

 private:
  ExitSamples samples_;
  trace::OrderedStream stream_;
  trace::EventTargets<trace::AnyTarget> events_{};
  TimelineObserver null_observer_;
  Timeline timeline_;  // who runs where
};

}  // namespace xenoscope::correlate
