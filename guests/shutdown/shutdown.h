// Where the time of a domain's shutdown went: the phases that its kernel's events show, and what
// its vCPUs did in them by Xen's trace; then what is left to the toolstack.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/phases/phase_switches.h"
#include "guests/phases/phase_times.h"
#include "guests/shutdown/shutdown_phases.h"
#include "recording/info.h"
#include "trace/trace_file.h"
#include "trace/unread_counts.h"

namespace xenoscope::guests {

struct Shutdown {
  // Contiguous: those of the guest's kernel, or "guest" from where the trace first has the domain,
  // if its events show none; "after last event", unless the last event's phase is the kernel's own;
  // "destroy" from the guest's end until Xen has removed the domain. Their times are of all
  // `vcpus`: they add up to their lengths times the number of these.
  std::vector<Phase> phases;
  std::vector<VcpuId> vcpus;  // of which the trace has something
  Tsc guest_end;              // no vCPU runs from here on
  // How it ended: kPoweredOff, kRebooted, kCrashed, kDestroyed by the toolstack while it ran, or
  // kUnknown: it shut down, and the trace does not say why.
  recording::DomainChange::Kind how = recording::DomainChange::Kind::kUnknown;
  bool destroyed = false;  // the trace has the end of the domain: the last phase is "destroy"
  ShutdownPhases kernel;
  trace::UnreadCounts unread;  // of the trace, up to the domain's end
};

// Returns how the domain ended, by the polls of the recording; nothing: they do not show that it
// did. O(changes).
[[nodiscard]] std::optional<recording::DomainChange::Kind> EndOf(
    DomainId domain, std::span<const recording::DomainChange> changes);

// Joins the phases with Xen's trace. `changes` are those of the recording. Errors (NotFound): the
// domain did not end; (Internal): a phase's times are more than its length. Two passes over the
// trace up to the domain's end, O(log phases) for each segment.
absl::StatusOr<Shutdown> FollowShutdown(DomainId domain, ShutdownPhases phases,
                                        std::span<const recording::DomainChange> changes,
                                        const trace::TraceFile& xen);

// Returns the phases as threads of all vCPUs. O(phases * vCPUs).
[[nodiscard]] PhaseSwitches SwitchesOf(DomainId domain, const Shutdown& shutdown);

}  // namespace xenoscope::guests
