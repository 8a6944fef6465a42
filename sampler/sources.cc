#include "sampler/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "base/error.h"
#include "sampler/agent/agent_proxy.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/perf/perf_source.h"
#include "sampler/pmu_events.h"
#include "sampler/running_processes.h"
#include "sampler/vcpu/vcpu_source.h"
#include "sampler/xen/behalf.h"
#include "sampler/xen/host.h"
#include "sampler/xen/vpmu.h"
#include "sampler/xenoprof/xenoprof_source.h"

namespace xenoscope::sampler {
namespace {

using recording::DomainInfo;
using recording::RecordingInfo;

bool Contains(const std::vector<DomainId>& ids, DomainId id) {
  return std::ranges::find(ids, id) != ids.end();
}

// Returns the domains whose agents are to sample; dom0 is always active.
absl::StatusOr<std::vector<DomainInfo>> ChooseActive(const SampleRequest& request,
                                                     const std::vector<DomainInfo>& all) {
  std::vector<DomainInfo> chosen;
  for (const std::string& name : request.active) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, FindDomain(all, name));
    const bool again = std::ranges::find(chosen, id, &DomainInfo::id) != chosen.end();
    if (id != kDom0 && !again) chosen.push_back(*std::ranges::find(all, id, &DomainInfo::id));
  }
  return chosen;
}

// Returns the passive domains. `agents` are the domains that their agents sample; those in `silent`
// have no agent that answered.
absl::StatusOr<std::vector<DomainId>> ChoosePassive(const SampleRequest& request,
                                                    const std::vector<DomainInfo>& all,
                                                    const std::vector<DomainId>& agents,
                                                    const std::vector<DomainId>& silent) {
  std::vector<DomainId> chosen;
  if (!request.passive) {
    for (const DomainInfo& domain : all) {
      if (domain.id != kDom0 && !Contains(agents, domain.id)) chosen.push_back(domain.id);
    }
    return chosen;
  }
  for (const std::string& name : *request.passive) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, FindDomain(all, name));
    if (id == kDom0) {
      return InvalidError("--passive={}: dom0 is always sampled; leave it out", name);
    }
    if (!Contains(chosen, id)) chosen.push_back(id);
  }
  for (const DomainId id : silent) {
    if (!Contains(chosen, id)) chosen.push_back(id);
  }
  return chosen;
}

using Agents = std::vector<std::unique_ptr<AgentProxy>>;

// The sampled domains other than dom0, and their sources.
struct DomainChoice {
  std::vector<DomainId> passive;
  Agents* agents = nullptr;  // agents of the active domains
};

AgentProxy* AgentOf(Agents& agents, DomainId id) {
  const auto found = std::ranges::find_if(
      agents, [id](const std::unique_ptr<AgentProxy>& agent) { return agent->domain().id == id; });
  return found == agents.end() ? nullptr : found->get();
}

std::vector<DomainId> MembersOfXenoprof(const Agents& agents) {
  std::vector<DomainId> members;
  for (const std::unique_ptr<AgentProxy>& agent : agents) {
    if (agent->IsMember()) members.push_back(agent->domain().id);
  }
  return members;
}

// Removes the agent of a domain that is not to be active after all.
void RemoveAgent(Agents& agents, DomainId id) {
  std::erase_if(agents, [id](const std::unique_ptr<AgentProxy>& agent) {
    return agent->domain().id == id && agent->Close().ok();
  });
}

std::string NameOf(const RecordingInfo& info, DomainId id) {
  return DomainLabel(id, info.NameOf(id));
}

// Notes which events of cycles are in step with guests' ticks.
void NoteSteps(const XenoprofSource& source, uint64_t clock_hz, std::vector<std::string>& notes) {
  const PmuEvent cycles = DefaultEvent(source.session().cpu_type(), clock_hz);
  for (const recording::EventInfo& event : source.Events()) {
    const bool is_cycles = event.code == cycles.code && event.unit_mask == cycles.unit_mask;
    if (!is_cycles || event.clocked_by != "pmu") continue;
    const int rate = TickRateInStep(event.period, clock_hz);
    if (rate == 0) continue;
    notes.push_back(
        fmt::format("the period {} of {} is in step with the ticks of guests with HZ={}, so that "
                    "samples may meet the same work again and again; a period of {}, for example, "
                    "is not",
                    event.period, event.name, rate, cycles.period));
  }
}

// Opens xenoprof. Notes name the domains that do not get the role that was asked for.
absl::StatusOr<std::unique_ptr<Source>> OpenXenoprof(const SampleRequest& request,
                                                     const RecordingInfo& info,
                                                     const DomainChoice& chosen,
                                                     const SessionLock& lock,
                                                     std::vector<std::string>& notes) {
  XenoprofRequest xenoprof;
  xenoprof.events = request.events;
  xenoprof.call_chains = request.call_chains;
  xenoprof.domains.passive = chosen.passive;
  xenoprof.domains.active = MembersOfXenoprof(*chosen.agents);
  // Xen samples a domain once, for itself or for dom0.
  std::erase_if(xenoprof.domains.passive,
                [&active = xenoprof.domains.active](DomainId id) { return Contains(active, id); });
  xenoprof.domains.enlist = [agents = chosen.agents](DomainId id) -> absl::StatusOr<bool> {
    AgentProxy* const agent = AgentOf(*agents, id);
    if (agent == nullptr) return NotFoundError("it has no agent");
    return agent->Enlist();
  };
  xenoprof.hpet_hz = request.hpet_hz;
  if (request.drain_interval) xenoprof.drain_interval = *request.drain_interval;
  xenoprof.buffer_samples = request.buffer_samples;
  xenoprof.clock_hz = info.host.clock_hz;
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<XenoprofSource> source,
                             XenoprofSource::Open(std::move(xenoprof), lock));
  for (const auto& [id, reason] : source->session().refused()) {
    RemoveAgent(*chosen.agents, id);
    const bool passive = Contains(source->session().passive(), id);
    notes.push_back(fmt::format("{} {}: {}", NameOf(info, id),
                                passive ? "is sampled by dom0 instead" : "cannot be active",
                                Message(reason)));
  }
  for (const auto& [id, reason] : source->session().left_out()) {
    notes.push_back(fmt::format("{} is not sampled: {}", NameOf(info, id), Message(reason)));
  }
  NoteSteps(*source, info.host.clock_hz, notes);
  return source;
}

// Returns whether the error means that this host cannot do it, not that the request is wrong.
bool IsOfThisHost(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status);
}

absl::StatusOr<std::unique_ptr<Source>> OpenVcpu(const SampleRequest& request,
                                                 const RecordingInfo& info,
                                                 const std::vector<DomainId>& chosen) {
  VcpuRequest vcpu;
  for (const DomainInfo& domain : info.domains) {
    if (Contains(chosen, domain.id)) vcpu.domains.push_back(domain);
  }
  vcpu.poll_hz = request.poll_hz;
  vcpu.seed = request.seed.value_or(std::random_device()());
  vcpu.clock_hz = info.host.clock_hz;
  vcpu.pcpus = info.host.pcpus;
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<VcpuCalls> calls, OpenVcpuCalls());
  std::unique_ptr<GuestMemory> memory;
  if (request.call_chains) {
    XENOSCOPE_ASSIGN_OR_RETURN(memory, OpenGuestMemory());
  }
  return VcpuSource::Open(vcpu, std::move(calls), std::move(memory), ReadTsc);
}

absl::StatusOr<std::unique_ptr<PerfSource>> OpenPerf(const SampleRequest& request,
                                                     const RecordingInfo& info,
                                                     size_t first_event) {
  PerfRequest perf;
  perf.events = request.events;
  perf.call_chains = request.call_chains;
  perf.stack_bytes = request.stack_bytes;
  perf.branch_records = request.branch_records;
  perf.jitter = request.jitter;
  perf.seed = request.seed.value_or(std::random_device()());
  perf.first_event = static_cast<uint8_t>(first_event);
  perf.clock_hz = info.host.clock_hz;
  if (request.drain_interval) perf.drain_interval = *request.drain_interval;
  perf.behalf_of = FindBehalfByXenstore();
  std::unique_ptr<PerfCalls> calls = LinuxPerfCalls();
  perf.vpmu_problems = VpmuProblems(ReadVpmuSetup(calls->VpmuMode(), info.host.pcpus));
  auto perf_maps = std::make_shared<PerfMapWatch>();
  if (request.java_maps) perf_maps->AskJavaVms();
  return PerfSource::Open(
      perf, std::move(calls), [] { return ReadRunningProcesses(); }, std::move(perf_maps));
}

absl::StatusOr<OpenedSources> OneSource(absl::StatusOr<std::unique_ptr<Source>> source) {
  XENOSCOPE_RETURN_IF_ERROR(source.status());
  OpenedSources opened;
  opened.sources.push_back(*std::move(source));
  return opened;
}

// Opens the best source: xenoprof sees Xen and dom0 too; vcpu sees the guests and perf dom0; the
// trace HVM guests only.
absl::StatusOr<OpenedSources> OpenBest(const SampleRequest& request, const RecordingInfo& info,
                                       const DomainChoice& chosen, const SessionLock& lock) {
  OpenedSources opened;
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Source>> xenoprof =
      OpenXenoprof(request, info, chosen, lock, notes);
  if (xenoprof.ok()) {
    opened.sources.push_back(*std::move(xenoprof));
    opened.notes.emplace_back("source xenoprof: samples Xen and all domains in all modes");
    std::ranges::move(notes, std::back_inserter(opened.notes));
    return opened;
  }
  if (!IsOfThisHost(xenoprof.status())) return xenoprof.status();
  std::string reason(Message(xenoprof.status()));
  absl::StatusOr<std::unique_ptr<Source>> vcpu = OpenVcpu(request, info, chosen.passive);
  if (vcpu.ok()) {
    opened.sources.push_back(*std::move(vcpu));
    opened.notes.push_back(fmt::format("source vcpu: dom0 polls the guests, since {}", reason));
  } else {
    reason += fmt::format("; and {}", Message(vcpu.status()));
  }
  const size_t events = opened.sources.empty() ? 0 : opened.sources.front()->Events().size();
  absl::StatusOr<std::unique_ptr<PerfSource>> perf = OpenPerf(request, info, events);
  if (perf.ok()) {
    const bool samples_xen = (*perf)->SamplesXen();  // its own notes say what else it samples
    opened.notes.push_back(
        opened.sources.empty()
            ? fmt::format("source perf: dom0's own Linux samples dom0{}, since {}",
                          samples_xen ? "" : " alone", reason)
            : fmt::format("source perf: dom0's own Linux samples dom0{}",
                          samples_xen ? "" : "; there are no samples of Xen"));
    opened.sources.push_back(*std::move(perf));
    return opened;
  }
  if (request.branch_records) return perf.status();
  if (!opened.sources.empty()) return opened;
  if (!request.events.empty()) return perf.status();
  opened.notes.push_back(
      fmt::format("source trace: the VM exits in the trace serve as samples, since {}; and {}",
                  reason, Message(perf.status())));
  return opened;
}

absl::StatusOr<OpenedSources> OpenRequested(const SampleRequest& request, const RecordingInfo& info,
                                            const DomainChoice& chosen, const SessionLock& lock) {
  if (!request.source) return OpenBest(request, info, chosen, lock);
  switch (*request.source) {
    case SourceKind::kXenoprof: {
      std::vector<std::string> notes;
      auto opened = OneSource(OpenXenoprof(request, info, chosen, lock, notes));
      if (opened.ok()) opened->notes = std::move(notes);
      return opened;
    }
    case SourceKind::kVcpu:
      return OneSource(OpenVcpu(request, info, chosen.passive));
    case SourceKind::kPerf: {
      XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<PerfSource> perf,
                                 OpenPerf(request, info, /*first_event=*/0));
      const bool samples_xen = perf->SamplesXen();
      absl::StatusOr<OpenedSources> opened = OneSource(std::move(perf));
      if (opened.ok() && !samples_xen) {
        opened->notes.emplace_back(
            "source perf: there are samples of dom0 alone, because Linux sees neither Xen nor the "
            "guests");
      }
      return opened;
    }
  }
  return InternalError("a source of no kind");
}

// Notes that no source asks Java machines, if that was asked for.
void NoteJavaMaps(const SampleRequest& request, OpenedSources& opened) {
  const bool asks = std::ranges::any_of(
      opened.sources, [](const auto& source) { return source->Info().name == "perf"; });
  if (!request.java_maps || asks) return;
  opened.notes.emplace_back(
      "--java-maps has no effect: only source perf names functions of compilers at run time, as "
      "its "
      "samples alone have a process");
}

// Notes which sources find callers in another way than was asked for.
void NoteFramePointers(const SampleRequest& request, OpenedSources& opened) {
  if (request.stack_bytes == 0 && !request.branch_records) return;
  for (const std::unique_ptr<Source>& source : opened.sources) {
    const std::string name = source->Info().name;
    if (name == "perf") continue;
    opened.notes.push_back(
        fmt::format("source {}: --call-graph {} is for source perf and agents; its call chains "
                    "{}",
                    name, request.branch_records ? "lbr" : "dwarf",
                    name == "vcpu" ? "follow the ORC of guests' kernels, or frame pointers"
                                   : "follow frame pointers"));
  }
}

AgentRequest AgentsFor(const SampleRequest& request) {
  AgentRequest agents;
  agents.how.events = request.agent_events;
  agents.how.chains = request.call_chains;
  agents.how.source = request.agent_source;
  agents.how.stack_bytes = request.stack_bytes;
  agents.how.branch_records = request.branch_records;
  agents.how.threads = request.agent_threads;
  agents.how.kernel_events = request.agent_kernel_events;
  agents.how.functions = request.agent_functions;
  agents.how.shutdown = request.agent_shutdown;
  if (request.agent_bytes) agents.limits.bytes = *request.agent_bytes;
  return agents;
}

// Adds the agents, and numbers their events after dom0's.
absl::Status AddAgents(Agents agents, const RecordingInfo& info, OpenedSources& opened) {
  size_t events = 0;
  for (const std::unique_ptr<Source>& source : opened.sources) events += source->Events().size();
  if (events > recording::kMaxRecordingEvents) {
    return InvalidError("{} events are too many, the limit is {}: give fewer with -e", events,
                        recording::kMaxRecordingEvents);
  }
  for (std::unique_ptr<AgentProxy>& agent : agents) {
    const absl::Status numbered = agent->NumberEvents(events);
    if (!numbered.ok()) {
      opened.notes.push_back(fmt::format("{} is not sampled by its agent: {}",
                                         NameOf(info, agent->domain().id), Message(numbered)));
      continue;
    }
    events += agent->Events().size();
    opened.sources.push_back(std::move(agent));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsToBeSampled(const SampleRequest& request, const DomainInfo& domain) {
  if (!request.passive) return true;
  return std::ranges::any_of(*request.passive, [&domain](const std::string& name) {
    return FindDomain({domain}, name).ok();
  });
}

absl::StatusOr<OpenedSources> OpenSources(const SampleRequest& request, const RecordingInfo& info,
                                          bool has_xen, const SessionLock& lock,
                                          const std::function<bool()>& is_interrupted) {
  if (!has_xen) return OneSource(OpenPerf(request, info, /*first_event=*/0));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainInfo> active,
                             ChooseActive(request, info.domains));
  const AgentRequest asked = AgentsFor(request);
  const agent::Host host{
      .tsc_hz = info.host.clock_hz, .read_tsc = ReadTsc, .is_interrupted = is_interrupted};
  Agents agents;
  std::vector<DomainId> answered;
  std::vector<DomainId> silent;
  std::vector<std::string> notes;
  for (const DomainInfo& domain : active) {
    absl::StatusOr<std::unique_ptr<AgentProxy>> agent =
        AgentProxy::Open(domain, asked, ConnectVchan, host);
    if (agent.ok()) {
      answered.push_back(domain.id);
      agents.push_back(*std::move(agent));
      continue;
    }
    silent.push_back(domain.id);
    notes.push_back(fmt::format("{} is sampled by dom0 instead: {}", NameOf(info, domain.id),
                                Message(agent.status())));
  }
  DomainChoice chosen{.passive = {}, .agents = &agents};
  XENOSCOPE_ASSIGN_OR_RETURN(chosen.passive,
                             ChoosePassive(request, info.domains, answered, silent));
  XENOSCOPE_ASSIGN_OR_RETURN(OpenedSources opened, OpenRequested(request, info, chosen, lock));
  opened.notes.insert(opened.notes.begin(), notes.begin(), notes.end());
  NoteFramePointers(request, opened);
  NoteJavaMaps(request, opened);
  XENOSCOPE_RETURN_IF_ERROR(AddAgents(std::move(agents), info, opened));
  return opened;
}

}  // namespace xenoscope::sampler
