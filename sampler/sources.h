// Which sources a recording samples with: those that were asked for, or the best that this host
// has.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "recording/info.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/event_spec.h"
#include "sampler/session_lock.h"
#include "sampler/source.h"

namespace xenoscope::sampler {

enum class SourceKind : uint8_t { kXenoprof, kVcpu, kPerf };

// What to sample. Domains are names or ids.
struct SampleRequest {
  std::optional<SourceKind> source;                        // not given: the best there is
  std::vector<EventSpec> events;                           // none: cycles
  bool call_chains = false;                                // of all that sample, agents too
  bool jitter = true;                                      // perf: periods change at random
  std::vector<std::string> active;                         // whose agents sample them
  std::optional<std::vector<std::string>> passive;         // not given: all that no agent samples
  std::optional<uint32_t> hpet_hz;                         // NMIs by the HPET instead of counters
  std::optional<std::chrono::nanoseconds> drain_interval;  // not given: each source's own
  uint32_t buffer_samples = 2048;  // of one vCPU; Xen keeps what was first asked for a domain
  double poll_hz = 250;            // vcpu: polls a second of each vCPU
  std::optional<uint64_t> seed;    // of random instants and periods; not given: a random one
  std::vector<std::string> agent_events;  // for agents, as they were written; none: their choice
  std::optional<uint64_t> agent_bytes;    // that an agent may send; not given: 1 GiB
  agent::GuestSource agent_source = agent::GuestSource::kPerf;
};

// Whether a domain that comes while sampling goes on is to be taken in, so far as there are ways.
bool IsToBeSampled(const SampleRequest& request, const recording::DomainInfo& domain);

struct OpenedSources {
  std::vector<std::unique_ptr<Source>> sources;  // none: no source works here; the trace remains
  std::vector<std::string> notes;                // what was chosen, and why
};

// Opens the sources that `request` asks for on the host that `info` describes. When it leaves the
// choice and no source works here, there are none, and a note says why. Without Xen (`has_xen`)
// there is perf alone. `lock` and `is_interrupted`, which says whether the user wants every wait
// for a guest to end, outlive them. Sources of guests come last. Errors: those of the sources;
// NotFound: a domain that is not there; InvalidArgument: more events than a recording can have.
absl::StatusOr<OpenedSources> OpenSources(const SampleRequest& request,
                                          const recording::RecordingInfo& info, bool has_xen,
                                          const SessionLock& lock,
                                          const std::function<bool()>& is_interrupted);

}  // namespace xenoscope::sampler
