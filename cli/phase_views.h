// The views of phases that boots and shutdowns share.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "cli/profile_source.h"
#include "guests/phases/phase_switches.h"
#include "guests/phases/phase_times.h"
#include "report/phases/phases_view.h"
#include "report/table/table.h"

namespace xenoscope::cli {

// Returns the functions of each phase, by samples. Errors (InvalidArgument): the event does not
// count time; those of ProfileSource.
absl::StatusOr<report::Table> PhaseFunctions(std::span<const guests::Phase> phases,
                                             guests::PhaseSwitches switches, DomainId domain,
                                             const ProfileOptions& options,
                                             const report::PhaseOptions& shown);

}  // namespace xenoscope::cli
