// From the tables of a trace's analyses, and what stands out of them, to what the store keeps.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analysis/document.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "store/slice.h"

namespace xenoscope::store {

// The counter of slices whose recordings had a trace, so that they have TraceSums.
inline constexpr std::string_view kTracedCounter = "traced_slices";
// That of the lengths of their traces, in cycles.
inline constexpr std::string_view kTracedCyclesCounter = "traced_cycles";

// The counter of slices with a trace whose hypercalls are there: those of older versions have none.
inline constexpr std::string_view kHypercallsCounter = "hypercall_slices";

// The most subreasons that an exit reason of a vCPU has; the time of others is one more's.
inline constexpr size_t kMostExitParts = 16;

// Adds the runstates, waits, VM exits and hypercalls of all vCPUs but the idle ones
// (analysis::MakeRunstateTotals, MakePreemptions, MakeExitTotals and MakePvEvents), and their keys
// to the dictionary. `traced` is the length of the trace; `label` returns how reports name the
// domain. Names are bounded. O(rows).
void GatherTrace(const analysis::Document& document, Cycles traced,
                 const std::function<std::string(DomainId)>& label, Dictionary& dictionary,
                 SliceSums& sums);

// Adds a finding: the key of its rule, the name of the domain that it is about ("": none), and the
// time that it concerns, in cycles. Those of one rule and domain are one.
void AddFinding(std::string_view rule, std::string_view domain, double cycles, SliceSums& sums);

}  // namespace xenoscope::store
