#include "sampler/agent/save_boot.h"

#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <utility>

#include "base/error.h"
#include "sampler/agent/agent_proxy.h"

namespace xenoscope::sampler {

absl::Status SaveBoot(const recording::DomainInfo& domain, const AgentSource::Connect& connect,
                      const agent::Host& host, const recording::Writer& writer,
                      recording::RecordingInfo& info, std::vector<std::string>& notes) {
  AgentRequest request;
  request.boot = true;
  const auto opened = AgentProxy::Open(domain, request, connect, host);
  if (!opened.ok()) {
    notes.push_back(fmt::format("{}: the trace of its boot is not in the recording: {}",
                                DomainLabel(domain.id, domain.name), Message(opened.status())));
    return absl::OkStatus();
  }
  AgentProxy& agent = **opened;
  absl::Status saved = agent.Save(writer, info);
  saved.Update(agent.Close());
  std::ranges::move(agent.FinalNotes(), std::back_inserter(notes));
  return saved;
}

}  // namespace xenoscope::sampler
