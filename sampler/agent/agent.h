// The program `xenoscope agent` of a guest: it offers a channel, serves the recorder that connects,
// and offers the next channel, until it is ended.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "sampler/agent/agent_server.h"

namespace xenoscope::sampler {

// Returns what an agent of this Linux works with. `allow_stacks` is as below. It takes no trace of
// the boot.
agent::ServerParts AgentParts(bool allow_stacks, const std::string& program);

// What an agent's owner allows, and what it is called with.
struct AgentSetup {
  DomainId allowed;           // the domain whose recordings it serves
  bool allow_stacks = false;  // these may have pieces of the stacks of this guest's programs
  // Java virtual machines of this guest are asked for their functions.
  bool asks_java_vms = false;
  // Goes on when SIGTERM or SIGHUP comes, as init sends them when this guest shuts down.
  bool until_killed = false;
  std::string program;  // its name and version
  // agent::ServerParts::keep_shared.
  std::function<absl::Status(Bytes)> keep_shared{};
  std::function<void(std::string_view)> say;  // called with each event, a line of text
};

// Serves recordings until SIGINT, SIGTERM or SIGHUP (see until_killed); of another domain than dom0
// only until a recorder leaves without a bye message: the domain may have ended then, and another
// one may get its number (docs/agent.md). Errors: no channel can be offered here.
absl::Status RunAgent(const AgentSetup& setup);

}  // namespace xenoscope::sampler
