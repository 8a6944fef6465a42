#include "guests/phases/phase_times.h"

#include <numeric>

namespace xenoscope::guests {

Cycles PhaseTimes::Sum() const { return std::accumulate(states.begin(), states.end(), Cycles{0}); }

}  // namespace xenoscope::guests
