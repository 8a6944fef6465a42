// A domain's boot as tables: its phases, and its initcalls.
#pragma once

#include "guests/boot/boot.h"
#include "report/phases/phases_view.h"
#include "report/table/table.h"

namespace xenoscope::report {

// Returns the phases in the order of time. The times of a row add up to `wall_s`, and the rows to
// the boot. O(phases).
[[nodiscard]] Table BootPhasesTable(const guests::Boot& boot, const PhaseOptions& options);
// Returns the initcalls, the longest first. Of those that another thread called than the one that
// boots, such as of modules, only the length is known. O(initcalls log initcalls).
[[nodiscard]] Table BootInitcallsTable(const guests::Boot& boot, const PhaseOptions& options);

}  // namespace xenoscope::report
