// What formats that show samples and trace on one timeline call things, and where they put a
// sample.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "correlate/context.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/timeline.h"

namespace xenoscope::report {

// Returns the name of all of a kind: "hypercall", "page_fault".
std::string MarkKindName(correlate::MarkKind kind);

// Returns the name of a hypercall, a trap or an emulation of Xen's.
std::string MarkName(const correlate::Mark& mark);

// Returns "running", or why a vCPU is runnable: "runnable: preempt".
std::string RunstateName(const correlate::RunstateInterval& interval);

// Returns the context that is more likely than all others together, if there is one. O(places).
std::optional<correlate::Context> LikelyContext(std::span<const correlate::Place> places);

}  // namespace xenoscope::report
