// The process that drives an agent for the AgentProxy in `record`. It runs in a sandbox
// (sampler/sandbox.h), so that no process of root's reads what a guest sends.
#pragma once

#include "recording/info.h"
#include "sampler/agent/agent_session.h"
#include "sampler/agent/agent_source.h"

namespace xenoscope::sampler {

// Serves calls on the socket `control` with an AgentSource of `domain`, and replies
// (sampler/agent/agent_calls.h); `data` is a socket to the guest. Returns when `control` is closed.
void ServeAgentCalls(int control, int data, const recording::DomainInfo& domain,
                     const AgentRequest& request, agent::Host host);

}  // namespace xenoscope::sampler
