// The choice of the sources of a recording: those that were requested, or the best ones on this
// host.
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

// The request for samples. Domains are names or ids.
struct SampleRequest {
  std::optional<SourceKind> source;  // nothing: the best source there is
  std::vector<EventSpec> events;     // events; none: cycles
  bool call_chains = false;          // whether samples have callers, those of agents included
  // For perf and agents: limit of the piece of the user stack with each sample, to unwind call
  // chains by DWARF; 0: callers are found by frame pointers.
  uint32_t stack_bytes = 0;
  bool branch_records = false;      // for perf and agents: whether branch records give the callers
  bool java_maps = false;           // for perf: whether Java machines are asked for their functions
  bool jitter = true;               // whether periods change at random, for perf
  std::vector<std::string> active;  // domains whose agents sample them
  std::optional<std::vector<std::string>> passive;  // nothing: all domains that no agent samples
  std::optional<uint32_t> hpet_hz;                  // rate of NMIs by the HPET, instead of counters
  std::optional<std::chrono::nanoseconds> drain_interval;  // nothing: each source's own
  // Samples that a vCPU's buffer holds; Xen keeps the first value for a domain.
  uint32_t buffer_samples = 2048;
  double poll_hz = 250;          // polls a second of each vCPU, for vcpu
  std::optional<uint64_t> seed;  // seed of random instants and periods; nothing: a random one
  // Events for agents, as the user wrote them; none: the agents choose.
  std::vector<std::string> agent_events;
  std::optional<uint64_t> agent_bytes;  // limit of bytes that an agent may send; nothing: 1 GiB
  agent::GuestSource agent_source = agent::GuestSource::kPerf;
  bool agent_threads = false;  // whether agents record the threads of their guests,
  // and with them these events of their kernels (sampler/ftrace/event_list.h)
  std::vector<std::string> agent_kernel_events;
  std::vector<std::string> agent_functions;  // and functions (sampler/ftrace/function_patterns.h)
  bool agent_shutdown = false;  // whether their guests shut down, so that events are sent at once
};

// Returns whether a domain that is created during sampling is to be sampled, if a source can do so.
bool IsToBeSampled(const SampleRequest& request, const recording::DomainInfo& domain);

struct OpenedSources {
  // none: no source works here, and only the trace is recorded
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<std::string> notes;  // the choice, with reasons
};

// Opens the sources that `request` asks for on the host that `info` describes. If the choice is
// free and no source works here, there are none, and a note says why. Without Xen (`has_xen`) there
// is only perf. `lock` and `is_interrupted`, which returns whether the user wants every wait for a
// guest to end, must outlive the sources. Sources of guests come last. Errors: those of the
// sources; NotFound: a domain does not exist; InvalidArgument: more events than a recording can
// have.
absl::StatusOr<OpenedSources> OpenSources(const SampleRequest& request,
                                          const recording::RecordingInfo& info, bool has_xen,
                                          const SessionLock& lock,
                                          const std::function<bool()>& is_interrupted);

}  // namespace xenoscope::sampler
