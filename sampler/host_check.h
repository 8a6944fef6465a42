// What this machine has of what recording needs, and what to do about what is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/agent/agent_source.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {

// What was found on the machine. An error says what is missing and what to do.
struct HostFacts {
  absl::Status privcmd;         // hypercalls as dom0
  bool dom0 = true;             // it may be a dom0, whether privcmd is usable or not
  std::string xen_version;      // empty: not known
  bool pv = false;              // dom0 is a PV domain
  absl::Status other;           // FailedPrecondition: another recording goes on
  bool stale_xenoprof = false;  // xenoprof, by a recording that was killed
  bool stale_trace = false;     // Xen, for nobody
  absl::Status xenstore;
  size_t guests = 0;
  uint32_t pcpus = 0;
  absl::StatusOr<std::string> xenoprof = std::string();  // as it calls the processor
  absl::Status vcpu;                                     // Xen lets us look at vCPUs
  absl::StatusOr<bool> perf = true;                      // it may be used; true: counters count
  std::vector<std::string> agents;                       // "web (xenoscope 0.1.0)": who answers
  absl::Status xentrace;                                 // it is installed
  absl::Status evtchn;                                   // /dev/xen/evtchn, which it needs
  absl::Status trace_free;                               // nobody else takes Xen's trace
  bool xen_symbols = false;                              // /proc/xen/xensyms
  bool kernel_symbols = false;                           // /proc/kallsyms with its addresses
};

// The domains, dom0 left out, whose agents answer: "web (xenoscope 0.1.0)". What they send is read
// in sandboxes. Before any other thread runs.
std::vector<std::string> ProbeAgents(DomainDirectory& directory,
                                     const AgentSource::Connect& connect);

// Looks at this machine. Changes nothing that a recording would notice, nor one that goes on.
HostFacts ProbeHost();

enum class Verdict : uint8_t { kYes, kPartly, kNo };
const char* ToString(Verdict verdict);

struct Finding {
  std::string subject;  // "xenoprof": a source, or what all need
  Verdict verdict = Verdict::kNo;
  std::string text;  // what follows from it, and what to do
};

// A finding for each source, after those for what all of them need; last what `record` would do.
std::vector<Finding> Diagnose(const HostFacts& facts);

}  // namespace xenoscope::sampler
