// Options of placing and refinement, from the columns of a profile.
#pragma once

#include <vector>

#include "base/tsc.h"
#include "correlate/em_refinement.h"
#include "correlate/placing/placer.h"
#include "correlate/profile.h"
#include "trace/dialect.h"

namespace xenoscope::profile {

// Returns whether `dimension` is one of `by`.
bool HasDimension(const std::vector<correlate::Dimension>& by, correlate::Dimension dimension);

// Returns which RIP Xen logs with a sample of a guest: on AMD from 4.11 on (method.md,
// section 2.2), and where the version may be one of these, that of the last VM entry; otherwise
// that of the exit.
correlate::LoggedRip LoggedRipOf(const trace::Dialect& dialect);

// Returns the options of placing for profiles of the same samples by each of these columns.
// `sampled` is the range [begin, end) of sampling, `longest_bracket` the length of the longest
// bracket in cycles.
correlate::PlacingOptions PlacingOptionsFor(
    const trace::Dialect& dialect, TscRange sampled, Cycles longest_bracket,
    const std::vector<std::vector<correlate::Dimension>>& profiles);

// Returns the options of refinement for a profile by `by`.
correlate::EmRefinementOptions RefinementOptionsFor(const std::vector<correlate::Dimension>& by);

}  // namespace xenoscope::profile
