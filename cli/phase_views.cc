#include "cli/phase_views.h"

#include "base/error.h"

namespace xenoscope::cli {

absl::StatusOr<report::Table> PhaseFunctions(std::span<const guests::Phase> phases,
                                             guests::PhaseSwitches switches, DomainId domain,
                                             const ProfileOptions& options,
                                             const report::PhaseOptions& shown) {
  using correlate::Dimension;
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options));
  report::ProfileReport out;
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(
      options,
      {.by = {Dimension::kDomain, Dimension::kThread, Dimension::kMode, Dimension::kFunction}}, out,
      /*observers=*/{}, &switches));
  if (!out.is_time) {
    return InvalidError("{} does not count time: choose another event with --event", out.event);
  }
  return report::PhaseFunctionsTable(phases, out, domain, shown);
}

}  // namespace xenoscope::cli
