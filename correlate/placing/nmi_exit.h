// Places samples that are NMI exits of the trace (docs/method.md, section 2).
#pragma once

#include <span>
#include <vector>

#include "correlate/nmi_matching.h"
#include "correlate/placing/outcome.h"
#include "correlate/placing/vcpu_history.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// Returns for each sample of one drain its NMI exit among those of the vCPU, or null. An exit is
// given to one sample only, also by later calls. The exits are valid until one is added or
// forgotten.
[[nodiscard]] std::vector<const ExitMark*> FindNmiExits(std::span<const recording::Sample> batch,
                                                        LoggedRip logged_rip, VcpuHistory& vcpu);

// Places the sample where its NMI exit was.
void PlaceAtNmiExit(const recording::Sample& sample, const ExitMark& exit, const VcpuTrack& track,
                    PlacingOutcome& outcome);

}  // namespace xenoscope::correlate
