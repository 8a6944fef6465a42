// The program `xenoscope agent` of a guest: it offers a channel, serves the recorder that connects,
// and offers the next channel, until it is ended.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/ids.h"
#include "sampler/agent/agent_server.h"

namespace xenoscope::sampler {

// Returns what an agent of this Linux works with. `allow_stacks` is as below. It takes no trace of
// the boot.
agent::ServerParts AgentParts(bool allow_stacks, const std::string& program);

// Serves recordings of domain `allowed` until SIGINT, SIGTERM or SIGHUP. `allow_stacks`: these may
// have pieces of the stacks of this guest's programs. If that is not dom0, it
// serves only until a recorder leaves without a bye message: the domain may have ended then, and
// another one may get its number (docs/agent.md). `say` is called with each event, a line of text.
// Errors: no channel can be offered here.
absl::Status RunAgent(DomainId allowed, bool allow_stacks, const std::string& program,
                      const std::function<void(std::string_view)>& say);

}  // namespace xenoscope::sampler
