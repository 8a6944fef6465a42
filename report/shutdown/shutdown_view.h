// A domain's shutdown as tables: its phases, and the processes that it ended.
#pragma once

#include <string_view>

#include "guests/shutdown/shutdown.h"
#include "recording/info.h"
#include "report/phases/phases_view.h"
#include "report/table/table.h"

namespace xenoscope::report {

// Returns what the domain did at its end: "powered off".
[[nodiscard]] std::string_view EndText(recording::DomainChange::Kind how);

// Returns the processes, those that took the longest to end first. O(processes log processes).
[[nodiscard]] Table ShutdownProcessesTable(const guests::Shutdown& shutdown,
                                           const PhaseOptions& options);

}  // namespace xenoscope::report
