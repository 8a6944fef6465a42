// Drives an agent in a sandbox (sampler/sandbox.h) for the AgentProxy in `record`: there, and not
// in a process of root's, is read what a guest sends.
#pragma once

#include "recording/info.h"
#include "sampler/agent/agent_session.h"
#include "sampler/agent/agent_source.h"

namespace xenoscope::sampler {

// Does what calls on the socket `control` want of an AgentSource of `domain`, and replies
// (sampler/agent/agent_calls.h); `data` is a socket to the guest. Returns when `control` is closed.
void ServeAgentCalls(int control, int data, const recording::DomainInfo& domain,
                     const AgentRequest& request, agent::Host host);

}  // namespace xenoscope::sampler
