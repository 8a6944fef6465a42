#include "sampler/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/error.h"
#include "sampler/agent_source.h"
#include "sampler/host.h"
#include "sampler/perf_source.h"
#include "sampler/running_processes.h"
#include "sampler/vchan_channel.h"
#include "sampler/vcpu_source.h"
#include "sampler/xenoprof_source.h"

namespace xenoscope::sampler {
namespace {

using recording::DomainInfo;
using recording::RecordingInfo;

bool Contains(const std::vector<DomainId>& ids, DomainId id) {
  return std::ranges::find(ids, id) != ids.end();
}

// The domains whose agents are asked; dom0 is active by itself.
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

// `agents` are the domains that their agents sample; of the `silent` ones no agent answered.
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
      return InvalidError("--passive={}: dom0 is always sampled, leave it out", name);
    }
    if (!Contains(chosen, id)) chosen.push_back(id);
  }
  for (const DomainId id : silent) {
    if (!Contains(chosen, id)) chosen.push_back(id);
  }
  return chosen;
}

// Who is sampled beside dom0, and by whom.
struct Chosen {
  std::vector<DomainId> passive;
  AgentSource* agents = nullptr;  // of the active domains; null: there are none
};

std::string NameOf(const RecordingInfo& info, DomainId id) {
  return DomainLabel(id, info.NameOf(id));
}

// Notes tell of domains that are not what they were to be.
absl::StatusOr<std::unique_ptr<Source>> OpenXenoprof(const SampleRequest& request,
                                                     const RecordingInfo& info,
                                                     const Chosen& chosen, const SessionLock& lock,
                                                     std::vector<std::string>& notes) {
  XenoprofRequest xenoprof;
  xenoprof.events = request.events;
  xenoprof.call_chains = request.call_chains;
  xenoprof.domains.passive = chosen.passive;
  if (chosen.agents != nullptr) {
    xenoprof.domains.active = chosen.agents->Members();
    // Xen samples a domain once, for itself or for dom0.
    std::erase_if(xenoprof.domains.passive, [&active = xenoprof.domains.active](DomainId id) {
      return Contains(active, id);
    });
    xenoprof.domains.enlist = [agents = chosen.agents](DomainId id) {
      return agents->EnlistMember(id);
    };
  }
  xenoprof.hpet_hz = request.hpet_hz;
  if (request.drain_interval) xenoprof.drain_interval = *request.drain_interval;
  xenoprof.buffer_samples = request.buffer_samples;
  xenoprof.clock_hz = info.host.clock_hz;
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<XenoprofSource> source,
                             XenoprofSource::Open(std::move(xenoprof), lock));
  for (const auto& [id, why] : source->session().refused()) {
    chosen.agents->Dismiss(id);
    const bool passive = Contains(source->session().passive(), id);
    notes.push_back(fmt::format("{} {}: {}", NameOf(info, id),
                                passive ? "is taken passive" : "cannot be active", Message(why)));
  }
  for (const auto& [id, why] : source->session().left_out()) {
    notes.push_back(fmt::format("{} is not sampled: {}", NameOf(info, id), Message(why)));
  }
  return source;
}

// Whether it says that this host cannot do it, and not that the request is wrong.
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
  vcpu.looks_hz = request.looks_hz;
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

absl::StatusOr<std::unique_ptr<Source>> OpenPerf(const SampleRequest& request,
                                                 const RecordingInfo& info, size_t first_event) {
  PerfRequest perf;
  perf.events = request.events;
  perf.call_chains = request.call_chains;
  perf.jitter = request.jitter;
  perf.seed = request.seed.value_or(std::random_device()());
  perf.first_event = static_cast<uint8_t>(first_event);
  perf.clock_hz = info.host.clock_hz;
  if (request.drain_interval) perf.drain_interval = *request.drain_interval;
  return PerfSource::Open(perf, LinuxPerfCalls(), [] { return ReadRunningProcesses(); });
}

absl::StatusOr<OpenedSources> Only(absl::StatusOr<std::unique_ptr<Source>> source) {
  XENOSCOPE_RETURN_IF_ERROR(source.status());
  OpenedSources opened;
  opened.sources.push_back(*std::move(source));
  return opened;
}

// The best there is: xenoprof sees Xen and dom0 too, vcpu the guests and perf dom0, the trace HVM
// guests only.
absl::StatusOr<OpenedSources> Best(const SampleRequest& request, const RecordingInfo& info,
                                   const Chosen& chosen, const SessionLock& lock) {
  OpenedSources opened;
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Source>> xenoprof =
      OpenXenoprof(request, info, chosen, lock, notes);
  if (xenoprof.ok()) {
    opened.sources.push_back(*std::move(xenoprof));
    opened.notes.emplace_back("source xenoprof: it samples Xen and all domains in every mode");
    std::ranges::move(notes, std::back_inserter(opened.notes));
    return opened;
  }
  if (!IsOfThisHost(xenoprof.status())) return xenoprof.status();
  std::string why(Message(xenoprof.status()));
  absl::StatusOr<std::unique_ptr<Source>> vcpu = OpenVcpu(request, info, chosen.passive);
  if (vcpu.ok()) {
    opened.sources.push_back(*std::move(vcpu));
    opened.notes.push_back(
        fmt::format("source vcpu: guests are looked at from dom0, since {}", why));
  } else {
    why += fmt::format("; and {}", Message(vcpu.status()));
  }
  const size_t events = opened.sources.empty() ? 0 : opened.sources.front()->Events().size();
  absl::StatusOr<std::unique_ptr<Source>> perf = OpenPerf(request, info, events);
  if (perf.ok()) {
    opened.sources.push_back(*std::move(perf));
    opened.notes.push_back(
        opened.sources.size() > 1
            ? "source perf: dom0 is sampled by its own Linux; nobody samples Xen"
            : fmt::format("source perf: dom0 alone is sampled, by its own Linux, since {}", why));
    return opened;
  }
  if (!opened.sources.empty()) return opened;
  if (!request.events.empty()) return perf.status();
  opened.notes.push_back(
      fmt::format("source trace: the VM exits in the trace are the samples, since {}; and {}", why,
                  Message(perf.status())));
  return opened;
}

absl::StatusOr<OpenedSources> OpenAsked(const SampleRequest& request, const RecordingInfo& info,
                                        const Chosen& chosen, const SessionLock& lock) {
  if (!request.source) return Best(request, info, chosen, lock);
  switch (*request.source) {
    case SourceKind::kXenoprof: {
      std::vector<std::string> notes;
      auto opened = Only(OpenXenoprof(request, info, chosen, lock, notes));
      if (opened.ok()) opened->notes = std::move(notes);
      return opened;
    }
    case SourceKind::kVcpu:
      return Only(OpenVcpu(request, info, chosen.passive));
    case SourceKind::kPerf: {
      absl::StatusOr<OpenedSources> perf = Only(OpenPerf(request, info, /*first_event=*/0));
      if (perf.ok()) {
        perf->notes.emplace_back(
            "source perf: samples are of dom0 alone: Linux sees neither Xen below it nor the "
            "guests");
      }
      return perf;
    }
  }
  return InternalError("a source of no kind");
}

// The number of the event that the next source begins with.
uint8_t EventsOf(const OpenedSources& opened) {
  size_t events = 0;
  for (const std::unique_ptr<Source>& source : opened.sources) events += source->Events().size();
  return static_cast<uint8_t>(events);
}

AgentRequest AgentsFor(const SampleRequest& request, const RecordingInfo& info) {
  AgentRequest agents;
  agents.clock_hz = info.host.clock_hz;
  agents.how.events = request.agent_events;
  agents.how.chains = request.call_chains;
  agents.how.source = request.agent_source;
  if (request.agent_bytes) agents.limits.bytes = *request.agent_bytes;
  return agents;
}

}  // namespace

bool IsToBeSampled(const SampleRequest& request, const DomainInfo& domain) {
  if (!request.passive) return true;
  return std::ranges::any_of(*request.passive, [&domain](const std::string& name) {
    return FindDomain({domain}, name).ok();
  });
}

absl::StatusOr<OpenedSources> OpenSources(const SampleRequest& request, const RecordingInfo& info,
                                          bool has_xen, const SessionLock& lock) {
  if (!has_xen) return Only(OpenPerf(request, info, /*first_event=*/0));
  AgentRequest agents = AgentsFor(request, info);
  XENOSCOPE_ASSIGN_OR_RETURN(agents.domains, ChooseActive(request, info.domains));
  AgentSource::Opened active = AgentSource::Open(agents, ConnectVchan, ReadTsc);
  std::vector<DomainId> answered;
  std::vector<DomainId> silent;
  std::vector<std::string> notes;
  for (const DomainInfo& domain : agents.domains) {
    if (active.source && active.source->RoleOf(domain.id) == recording::Role::kActive) {
      answered.push_back(domain.id);
    }
  }
  for (const auto& [id, why] : active.silent) {
    silent.push_back(id);
    notes.push_back(fmt::format("{} is taken passive: {}", NameOf(info, id), Message(why)));
  }
  Chosen chosen{.passive = {}, .agents = active.source.get()};
  XENOSCOPE_ASSIGN_OR_RETURN(chosen.passive,
                             ChoosePassive(request, info.domains, answered, silent));
  XENOSCOPE_ASSIGN_OR_RETURN(OpenedSources opened, OpenAsked(request, info, chosen, lock));
  opened.notes.insert(opened.notes.begin(), notes.begin(), notes.end());
  if (active.source && active.source->HasGuests()) {
    active.source->SetFirstEvent(EventsOf(opened));
    opened.sources.push_back(std::move(active.source));
  }
  return opened;
}

}  // namespace xenoscope::sampler
