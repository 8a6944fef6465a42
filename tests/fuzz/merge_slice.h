// Makes profiles and a summary of a slice, for fuzz targets of stores.
#pragma once

#include <cstdlib>
#include <vector>

#include "store/merge.h"
#include "store/trace_totals.h"

// Ends the program where a slice that passes store::CheckSlice cannot be added.
inline void Merge(const xenoscope::store::Slice& slice,
                  const xenoscope::store::Dictionary& dictionary) {
  using xenoscope::correlate::Dimension;
  for (const std::vector<Dimension>& by :
       {std::vector{Dimension::kDomain}, std::vector{Dimension::kMode, Dimension::kFunction},
        std::vector{Dimension::kDomain, Dimension::kExit, Dimension::kFunction}}) {
    auto merger = xenoscope::store::Merger::By(by);
    if (!merger.ok() || !merger->Add(slice, dictionary).ok()) std::abort();
    (void)merger->Finish();
  }
  xenoscope::store::TraceTotals totals(slice.head.clock_hz);
  totals.Add(slice, dictionary);
  (void)totals.Describe({.by_vcpu = true});
}
