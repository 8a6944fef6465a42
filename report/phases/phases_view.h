// The phases of a boot or a shutdown as tables: their times, VM exits and functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/phases/phase_times.h"
#include "report/profile/profile_view.h"
#include "report/table/table.h"
#include "trace/names.h"

namespace xenoscope::report {

struct PhaseOptions {
  Clock clock;
  trace::Vendor vendor = trace::Vendor::kUnknown;  // whose exits have names
  // For text: columns in which nothing is are left out, and there is a footer.
  bool text = false;
  size_t limit = 0;  // the most rows of a table, or of a phase where it has several; 0: all
};

// Returns the times of all phases. O(phases + reasons).
[[nodiscard]] guests::PhaseTimes SumOf(std::span<const guests::Phase> phases);

// The columns of times: in text those in which something of `sum` is.
class PhaseTimeColumns {
 public:
  PhaseTimeColumns(const guests::PhaseTimes& sum, const PhaseOptions& options);

  void AddColumns(std::vector<Column>& columns) const;
  void AddCells(const guests::PhaseTimes& times, std::vector<Cell>& cells) const;
  void AddEmptyCells(std::vector<Cell>& cells) const;

 private:
  struct Shown {
    guests::PhaseState state;
    Column column;
  };
  Clock clock_;
  std::vector<Shown> shown_;
  bool exits_;
};

// Returns the phases, of which there is one at least, in the order of time. The times of a row add
// up to `wall_s` for each vCPU that counts, and the rows to the footer `whole`. O(phases).
[[nodiscard]] Table PhasesTable(std::span<const guests::Phase> phases, const std::string& whole,
                                const PhaseOptions& options);
// Returns the time in Xen of each phase by the reason of the VM exit. O(exits).
[[nodiscard]] Table PhaseExitsTable(std::span<const guests::Phase> phases,
                                    const PhaseOptions& options);
// Returns the functions that the domain's vCPUs executed in each phase, and Xen for it, by samples:
// `profile` is by domain, thread (guests/phases/phase_switches.h), mode and function, of an event
// that counts time. The longest of a phase come first; text leaves out those of less than half a
// sample. Times have their 95 % intervals. O(rows log rows).
[[nodiscard]] Table PhaseFunctionsTable(std::span<const guests::Phase> phases,
                                        const ProfileReport& profile, DomainId domain,
                                        const PhaseOptions& options);

}  // namespace xenoscope::report
