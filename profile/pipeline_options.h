// How samples are placed and their places refined, for a profile by some columns.
#pragma once

#include <vector>

#include "base/tsc.h"
#include "correlate/em_refinement.h"
#include "correlate/placing/placer.h"
#include "correlate/profile.h"
#include "trace/dialect.h"

namespace xenoscope::profile {

// Whether `dimension` is one of `by`.
bool HasDimension(const std::vector<correlate::Dimension>& by, correlate::Dimension dimension);

// Whether Xen of this version and vendor logs the RIP of the last VM entry with a sample, not that
// of its exit: on AMD from 4.11 on, until xenoprof ends (method.md, section 2.2), and where the
// version may be one of these.
correlate::LoggedRip LoggedRipOf(const trace::Dialect& dialect);

// What placing has to find out for a profile by the columns of `by` and `secondary_by`. `sampled`
// is while samples were taken, `longest_bracket` the most cycles that a sample's bracket has.
correlate::PlacingOptions PlacingOptionsFor(const trace::Dialect& dialect, TscRange sampled,
                                            Cycles longest_bracket,
                                            const std::vector<correlate::Dimension>& by,
                                            const std::vector<correlate::Dimension>& secondary_by);

// What refinement has to tell apart for a profile by the columns of `by`.
correlate::EmRefinementOptions RefinementOptionsFor(const std::vector<correlate::Dimension>& by);

}  // namespace xenoscope::profile
