// What a guest's kernel recorded of its boot, which its agent has since it began.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "recording/info.h"
#include "recording/writer.h"
#include "sampler/agent/agent_session.h"
#include "sampler/agent/agent_source.h"

namespace xenoscope::sampler {

// Adds the trace of the domain's boot to the recording, and its kernel's symbols if the recording
// has none. To be called when no other thread runs. Notes say what could not be had, though the
// recording is good. Errors: the recording cannot be written.
absl::Status SaveBoot(const recording::DomainInfo& domain, const AgentSource::Connect& connect,
                      const agent::Host& host, const recording::Writer& writer,
                      recording::RecordingInfo& info, std::vector<std::string>& notes);

}  // namespace xenoscope::sampler
