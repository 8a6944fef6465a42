// Sends a guest what its owner may see of a recording (record --share).
#pragma once

#include "absl/status/status.h"
#include "base/bytes.h"
#include "recording/info.h"
#include "sampler/agent/agent_caller.h"

namespace xenoscope::sampler {

// Sends the bytes to the agent of `domain`, at most agent::kMaxSharedBytes, and waits until it has
// kept them. A guest that does not offer its channel again within some seconds, or does not take
// the bytes in agent::Limits::share, is given up. The process that reads the agent's answers has no
// privileges, as always. To be called when no other thread runs. Errors: why the guest does not
// have them.
absl::Status SendShared(const recording::DomainInfo& domain, Bytes bytes,
                        const AgentSource::Connect& connect, const agent::Host& host,
                        const AgentRequest& request = {},
                        const AgentCaller::Worker& worker = ServeAgentCalls);

}  // namespace xenoscope::sampler
