// A domain's boot as tables: its phases, its initcalls, and its VM exits.
#pragma once

#include <cstddef>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/boot/boot.h"
#include "report/profile/profile_view.h"
#include "report/table/table.h"
#include "trace/names.h"

namespace xenoscope::report {

struct BootOptions {
  Clock clock;
  trace::Vendor vendor = trace::Vendor::kUnknown;  // whose exits have names
  // For text: columns in which nothing is are left out, and there is a footer.
  bool text = false;
  size_t limit = 0;  // the most initcalls, or exits or functions of a phase; 0: all
};

// Returns the phases in the order of time. The times of a row add up to `wall_s`, and the rows to
// the boot. O(phases).
[[nodiscard]] Table BootPhasesTable(const guests::Boot& boot, const BootOptions& options);
// Returns the initcalls, the longest first. Of those that another thread called than the one that
// boots, such as of modules, only the length is known. O(initcalls log initcalls).
[[nodiscard]] Table BootInitcallsTable(const guests::Boot& boot, const BootOptions& options);
// Returns the time in Xen of each phase by the reason of the VM exit. O(exits).
[[nodiscard]] Table BootExitsTable(const guests::Boot& boot, const BootOptions& options);
// Returns the functions that the domain's vCPU executed in each phase, and Xen for it, by samples:
// `profile` is by domain, thread (BootSwitches), mode and function, of an event that counts time.
// The longest of a phase come first; text leaves out those of less than half a sample. Times have
// their 95 % intervals. O(rows log rows).
[[nodiscard]] Table BootFunctionsTable(const guests::Boot& boot, const ProfileReport& profile,
                                       DomainId domain, const BootOptions& options);

}  // namespace xenoscope::report
