// The check of this machine: what recording needs, what is missing, and what to do about that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/agent/agent_source.h"
#include "sampler/xen/host.h"
#include "sampler/xen/vpmu.h"

namespace xenoscope::sampler {

// What was found on the machine. An error says what is missing and what to do.
struct HostFacts {
  absl::Status privcmd;         // OK: hypercalls work as dom0
  bool dom0 = true;             // whether it may be a dom0, even if privcmd is not usable
  std::string xen_version;      // empty: not known
  bool pv = false;              // whether dom0 is a PV domain
  absl::Status other;           // FailedPrecondition: another recording is running
  bool stale_xenoprof = false;  // whether a killed recording left xenoprof running
  // What was restored of dom0's weight, which a killed recording had raised; an error: it could not
  // be restored. Nothing: there was nothing to restore.
  absl::StatusOr<std::optional<std::string>> weight = std::optional<std::string>();
  bool stale_trace = false;  // whether Xen still traces and no process reads the trace
  absl::Status xenstore;
  size_t guests = 0;
  uint32_t pcpus = 0;
  absl::StatusOr<std::string> xenoprof = std::string();  // xenoprof's name of the processor
  VpmuSetup vpmu;
  absl::Status vcpu;                 // OK: Xen lets dom0 read vCPUs
  absl::StatusOr<bool> perf = true;  // whether counters count; an error: perf may not be used
  bool branch_records = false;       // whether perf's samples can have branch records by calls
  std::vector<std::string> agents;   // agents that answer: "web (xenoscope 0.1.0)"
  absl::Status xentrace;             // OK: xentrace is installed
  absl::Status evtchn;               // OK: /dev/xen/evtchn, which xentrace needs, is usable
  absl::Status trace_free;           // OK: no other process takes Xen's trace
  bool xen_symbols = false;          // whether /proc/xen/xensyms has symbols
  bool kernel_symbols = false;       // whether /proc/kallsyms has addresses
};

// Returns the domains other than dom0 whose agents answer: "web (xenoscope 0.1.0)". Sandboxes read
// their messages. To be called before any other thread runs.
std::vector<std::string> ProbeAgents(DomainDirectory& directory,
                                     const AgentSource::Connect& connect);

// Examines this machine. Changes nothing that affects a running recording; restores dom0's weight
// where a killed one had raised it.
HostFacts ProbeHost();

enum class Verdict : uint8_t { kYes, kPartly, kNo };
const char* ToString(Verdict verdict);

// A finding about one subject.
struct Finding {
  std::string subject;  // a source such as "xenoprof", or what all sources need
  Verdict verdict = Verdict::kNo;
  std::string text;  // consequence, and what to do
};

// Returns findings about what all sources need, then about each source, and last what `record`
// would do.
std::vector<Finding> Diagnose(const HostFacts& facts);

}  // namespace xenoscope::sampler
