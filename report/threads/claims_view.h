// What kernels say of idle and stolen time beside what was true, as a table.
#pragma once

#include <functional>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/clock/claimed_times.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

// Returns a row for each vCPU, or for each domain if that is what ThreadsOptions::by says; times
// are in seconds of `clock`. O(vCPUs).
[[nodiscard]] Table ClaimsTable(const guests::Claims& claims,
                                const std::function<std::string(DomainId)>& name_of, Clock clock,
                                const ThreadsOptions& options);

}  // namespace xenoscope::report
