// Totals of the intervals of a recording that is still being made (docs/method.md, section 10).
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "profile/event_totals.h"
#include "profile/sample_totals.h"
#include "recording/recording.h"

namespace xenoscope::profile {

// Estimates one interval after the other. Each sample counts once in all, but in parts where its
// bracket does not say in which interval it was taken.
class IntervalTotals {
 public:
  // The first interval begins at `begin`. Totals are by `by`, which is not kPcpu, and only of these
  // domains, if there are any.
  IntervalTotals(TotalsBy by, std::vector<DomainId> domains, Tsc begin)
      : by_(by), domains_(std::move(domains)), begin_(begin) {}

  // Returns the totals from the end of the last interval to `end`, from the samples that have been
  // written by now. Samples that come later count in the interval that is estimated next. A row
  // that has had samples stays, until its domain is gone. O(samples that are new). Errors: those of
  // reading.
  absl::StatusOr<EventTotals> Next(const recording::Recording& recording, Tsc end);
  // Returns the totals from the end of the last interval to the end of the recording, which is
  // complete, with all samples that have not been counted. O(samples that are new). Errors: those
  // of reading.
  absl::StatusOr<EventTotals> Rest(const recording::Recording& recording);

 private:
  // A sample whose bracket ends after the interval in which it was read.
  struct Waiting {
    TotalKey key;
    uint8_t event = 0;  // index into EventComparison::events
    TscRange rest;      // the part of its bracket that has not been counted
    Cycles whole = 0;   // the length of its bracket
  };

  // Adds the part of the sample before `end`, and keeps the rest.
  void Add(Waiting sample, Tsc end, SampleTotals& sums);
  void AddKnownRows(const recording::Recording& recording, SampleTotals& sums);

  TotalsBy by_;
  std::vector<DomainId> domains_;
  Tsc begin_;
  std::vector<uint64_t> read_;  // bytes of each source's file that were read
  std::vector<Waiting> waiting_;
  std::set<TotalKey> rows_;  // those that have had samples
};

}  // namespace xenoscope::profile
