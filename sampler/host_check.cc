#include "sampler/host_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "base/error.h"
#include "sampler/agent/agent_proxy.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/perf/perf_calls.h"
#include "sampler/perf/perf_events.h"
#include "sampler/session_lock.h"
#include "sampler/vcpu/vcpu_calls.h"
#include "sampler/xen/privcmd.h"
#include "sampler/xen/trace_buffers.h"
#include "sampler/xen/weight_boost.h"
#include "sampler/xen/xentrace.h"
#include "sampler/xenoprof/xenoprof_calls.h"
#include "sampler/xenoprof/xenoprof_session.h"

namespace xenoscope::sampler {
namespace {

// Returns whether one of the first symbols has an address: the very first may really be at 0.
bool KernelSymbolsHaveAddresses() {
  constexpr int kLines = 64;
  std::ifstream file("/proc/kallsyms");
  std::string line;
  for (int i = 0; i < kLines && std::getline(file, line); ++i) {
    if (!absl::StartsWith(line, "0000000000000000 ")) return true;
  }
  return false;
}

absl::StatusOr<std::string> ProbeXenoprof() {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<XenoprofCalls> calls,
                             OpenXenoprofCalls(XenoprofRole::kInitiator));
  return XenoprofSession::Probe(*calls);
}

// Fills in the facts that Xen is asked for.
void ProbeXen(HostFacts& facts) {
  absl::StatusOr<std::unique_ptr<DomainDirectory>> directory = DomainDirectory::Open();
  facts.xenstore = directory.status();
  if (directory.ok()) {
    const size_t domains = (*directory)->Ids().size();
    facts.guests = domains == 0 ? 0 : domains - 1;
  }
  if (const auto pcpus = OnlineApicIds(); pcpus.ok()) {
    facts.pcpus = static_cast<uint32_t>(pcpus->size());
  }
  facts.vpmu = ReadVpmuSetup(LinuxPerfCalls()->VpmuMode(), facts.pcpus);
  facts.vcpu = OpenVcpuCalls().status();
  // Asking xenoprof would end another recorder's session, and must not happen after a killed one.
  const absl::StatusOr<SessionLock> lock = SessionLock::Take();
  facts.other = lock.status();
  if (lock.ok()) {
    facts.trace_free = CheckTraceIsFree();
    facts.stale_trace = IsTraceStale();
    facts.weight = RestoreStaleWeight();
  }
  // An agent serves one recorder at a time.
  if (lock.ok() && directory.ok()) facts.agents = ProbeAgents(**directory, ConnectVchan);
  if (!lock.ok()) {
    facts.xenoprof = lock.status();
  } else if (!lock->stale_note().empty()) {
    facts.stale_xenoprof = true;
  } else {
    facts.xenoprof = ProbeXenoprof();
  }
}

Finding Yes(std::string subject, std::string text) {
  return {std::move(subject), Verdict::kYes, std::move(text)};
}
Finding Partly(std::string subject, std::string text) {
  return {std::move(subject), Verdict::kPartly, std::move(text)};
}
Finding No(std::string subject, std::string text) {
  return {std::move(subject), Verdict::kNo, std::move(text)};
}
Finding No(std::string subject, const absl::Status& why) {
  return No(std::move(subject), std::string(Message(why)));
}

Finding Xenoprof(const HostFacts& facts) {
  if (!facts.pv) {
    return No("xenoprof", "dom0 is not a PV domain, and xenoprof is for PV domains only");
  }
  if (facts.stale_xenoprof) {
    return Yes("xenoprof", "left running by a killed recording; the next `record` stops it");
  }
  if (!facts.xenoprof.ok()) return No("xenoprof", facts.xenoprof.status());
  return Yes(
      "xenoprof",
      fmt::format("samples Xen, dom0 and all guests with the counters of {}; a machine without "
                  "counters (a virtual one) needs --source vcpu or --clock hpet:HZ instead",
                  *facts.xenoprof));
}

// Xen's vPMU is the only source of samples of Xen where xenoprof is missing.
std::optional<Finding> Vpmu(const HostFacts& facts) {
  const VpmuSetup& vpmu = facts.vpmu;
  if (vpmu.mode.empty() || vpmu.mode == kVpmuOff) {
    if (!facts.pv || facts.stale_xenoprof || facts.xenoprof.ok()) return std::nullopt;
    return Partly("vPMU",
                  fmt::format("it could sample Xen and all domains in place of xenoprof: boot Xen "
                              "with vpmu=1 dom0_max_vcpus={} dom0_vcpus_pin and without watchdog, "
                              "then write all to /sys/hypervisor/pmu/pmu_mode before any guest "
                              "starts",
                              facts.pcpus));
  }
  std::string text = vpmu.mode == kVpmuAll  ? "mode all: perf samples Xen and all domains"
                     : vpmu.mode == kVpmuHv ? "mode hv: perf samples dom0 and Xen's work for it"
                                            : "mode self: perf samples dom0";
  if (vpmu.mode != kVpmuAll) {
    text += "; for all domains write all to /sys/hypervisor/pmu/pmu_mode before any guest starts";
  }
  const std::vector<std::string> problems = VpmuProblems(vpmu);
  if (problems.empty()) return Yes("vPMU", std::move(text));
  return Partly("vPMU", fmt::format("{}; {}", text, fmt::join(problems, "; ")));
}

Finding Vcpu(const HostFacts& facts) {
  if (!facts.vcpu.ok()) return No("vcpu", facts.vcpu);
  if (facts.guests == 0) return Partly("vcpu", "samples guests, and there are none now");
  if (facts.pcpus == 1) {
    return Partly("vcpu",
                  "on this host's single pCPU no guest runs while dom0 samples, so it shows where "
                  "guests were preempted");
  }
  return Yes("vcpu", "samples the guests, not dom0 and Xen");
}

Finding Perf(const HostFacts& facts) {
  if (!facts.perf.ok()) return No("perf", facts.perf.status());
  std::string_view whom =
      facts.dom0 ? "dom0, not Xen and the guests" : "this Linux, its kernel and its processes";
  if (*facts.perf && facts.vpmu.mode == kVpmuAll) whom = "Xen and all domains";
  if (*facts.perf && facts.vpmu.mode == kVpmuHv)
    whom = "dom0 and Xen's work for it, not the guests";
  if (*facts.perf) return Yes("perf", fmt::format("samples {}, by hardware counters", whom));
  return Yes("perf",
             fmt::format("samples {}, by Linux's timer: no performance counter counts here", whom));
}

Finding CallChains(const HostFacts& facts) {
  return Yes("call chains",
             facts.branch_records
                 ? "perf has --call-graph fp, dwarf and lbr"
                 : "perf has --call-graph fp and dwarf; lbr needs branch records by calls, which "
                   "Intel's processors have since Haswell, and most virtual machines do not");
}

Finding Agents(const HostFacts& facts) {
  if (facts.agents.empty()) {
    return Partly("agents",
                  "no domain runs an agent: start `xenoscope agent` in the domains that should "
                  "sample themselves (docs/agent.md)");
  }
  return Yes("agents", fmt::format("`record --active` can have {}", fmt::join(facts.agents, ", ")));
}

Finding Trace(const HostFacts& facts) {
  if (!facts.xentrace.ok()) return No("trace", facts.xentrace);
  if (!facts.evtchn.ok()) return No("trace", facts.evtchn);
  if (!facts.trace_free.ok()) return No("trace", facts.trace_free);
  if (facts.stale_trace) {
    return Yes("trace",
               "tracing is still on, left by a killed recording or by xentrace -x; the next "
               "`record` stops it, or run `xentrace -T 1 /dev/null`");
  }
  return Yes("trace", "records scheduling and VM exits, and samples HVM and PVH guests");
}

// Returns what `record --source auto` does, as sampler/sources.cc chooses.
Finding Choice(const std::vector<Finding>& findings, const HostFacts& facts) {
  const auto works = [&findings](std::string_view subject) {
    const auto found = std::ranges::find(findings, subject, &Finding::subject);
    return found != findings.end() && found->verdict != Verdict::kNo;
  };
  const bool trace = works("trace");
  const auto takes = [trace](std::string_view sources) {
    if (trace) return Yes("record", fmt::format("uses {}, with the trace", sources));
    return Partly("record", fmt::format("uses {}, and needs --no-trace", sources));
  };
  if (!facts.xenstore.ok() || !facts.other.ok()) return No("record", "see above");
  if (works("xenoprof")) return takes("xenoprof");
  const bool vcpu = works("vcpu") && facts.guests > 0;
  if (vcpu && works("perf")) return takes("vcpu for the guests and perf for dom0");
  if (vcpu) return takes("vcpu");
  if (works("perf")) return takes("perf");
  if (trace) return Partly("record", "uses the trace alone");
  return No("record", "no source works here");
}

}  // namespace

const char* ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kYes:
      return "yes";
    case Verdict::kPartly:
      return "partly";
    case Verdict::kNo:
      return "no";
  }
  return "?";
}

std::vector<std::string> ProbeAgents(DomainDirectory& directory,
                                     const AgentSource::Connect& connect) {
  agent::Limits limits;
  limits.hello = limits.ready = std::chrono::milliseconds(500);
  limits.first_pings = 0;
  std::vector<std::string> answers;
  const absl::StatusOr<std::vector<recording::DomainInfo>> domains = directory.List();
  if (!domains.ok()) return answers;
  for (const recording::DomainInfo& domain : *domains) {
    if (domain.id == kDom0) continue;
    const auto program = AgentProxy::Greet(domain, limits, connect, {.read_tsc = ReadTsc});
    if (program.ok()) answers.push_back(fmt::format("{} ({})", domain.name, *program));
  }
  return answers;
}

HostFacts ProbeHost() {
  HostFacts facts;
  facts.dom0 = MayBeDom0();
  const std::unique_ptr<PerfCalls> perf = LinuxPerfCalls();
  facts.perf = ProbePerf(*perf);
  facts.branch_records = RecordsCalls(*perf);
  facts.privcmd = CheckPrivcmd();
  if (!facts.privcmd.ok()) return facts;
  facts.xen_version = ReadXenInfo().version;
  facts.pv = Dom0IsPv();
  ProbeXen(facts);
  facts.xentrace = FindXentrace().status();
  if (access("/dev/xen/evtchn", R_OK | W_OK) != 0) {
    facts.evtchn = PreconditionError("/dev/xen/evtchn is missing: run `modprobe xen-evtchn`");
  }
  facts.xen_symbols = access("/proc/xen/xensyms", R_OK) == 0;
  facts.kernel_symbols = KernelSymbolsHaveAddresses();
  return facts;
}

std::vector<Finding> Diagnose(const HostFacts& facts) {
  const Finding reports =
      Yes("reports", "this machine can read recordings and traces of other hosts: report, summary");
  if (!facts.dom0) {
    const Finding perf = Perf(facts);
    const Finding choice = perf.verdict == Verdict::kNo
                               ? No("record", "no source works here")
                               : Partly("record", "uses perf, without a trace");
    if (perf.verdict == Verdict::kNo) {
      return {No("recording of Xen", facts.privcmd), perf, choice, reports};
    }
    return {No("recording of Xen", facts.privcmd), perf, CallChains(facts), choice, reports};
  }
  if (!facts.privcmd.ok()) return {No("recording", facts.privcmd), reports};
  std::vector<Finding> findings;
  findings.push_back(Yes("recording", fmt::format("this is dom0 of Xen {}", facts.xen_version)));
  if (!facts.xenstore.ok()) findings.push_back(No("xenstore", facts.xenstore));
  if (!facts.other.ok()) findings.push_back(Partly("session", std::string(Message(facts.other))));
  if (!facts.weight.ok()) {
    findings.push_back(Partly("weight", std::string(Message(facts.weight.status()))));
  } else if (*facts.weight) {
    findings.push_back(Yes("weight", **facts.weight));
  }
  findings.push_back(Xenoprof(facts));
  if (std::optional<Finding> vpmu = Vpmu(facts)) findings.push_back(*std::move(vpmu));
  findings.push_back(Vcpu(facts));
  findings.push_back(Perf(facts));
  if (facts.perf.ok()) findings.push_back(CallChains(facts));
  if (facts.other.ok()) findings.push_back(Agents(facts));
  findings.push_back(Trace(facts));
  findings.push_back(facts.xen_symbols
                         ? Yes("Xen's symbols", "/proc/xen/xensyms")
                         : No("Xen's symbols", "run `mount -t xenfs none /proc/xen`"));
  findings.push_back(facts.kernel_symbols ? Yes("dom0's symbols", "/proc/kallsyms")
                                          : No("dom0's symbols",
                                               "/proc/kallsyms hides its addresses: run "
                                               "`sysctl kernel.kptr_restrict=1`"));
  findings.push_back(Choice(findings, facts));
  findings.push_back(reports);
  return findings;
}

}  // namespace xenoscope::sampler
