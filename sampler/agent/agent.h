// The agent of a guest as a program: offers a channel, serves the recorder that comes, and offers
// the next one, until it is told to end.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/ids.h"

namespace xenoscope::sampler {

// Serves recordings of domain `allowed` until SIGINT, SIGTERM or SIGHUP; of a domain that is not
// dom0 only until a recorder goes without a bye, since the domain may have ended then, and its
// number become another's (docs/agent.md). `say` is called with what happens, a line each. Errors:
// no channel can be offered here.
absl::Status RunAgent(DomainId allowed, const std::string& program,
                      const std::function<void(std::string_view)>& say);

}  // namespace xenoscope::sampler
