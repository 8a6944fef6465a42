// A monitor of Xen's livepatches and their places, polled during a recording as they come and go.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "sampler/xen/console_calls.h"

namespace xenoscope::sampler {

class LivepatchMonitor {
 public:
  explicit LivepatchMonitor(std::unique_ptr<ConsoleCalls> calls) : calls_(std::move(calls)) {}

  // Returns the console's list of livepatches (symbolizer/livepatches.h) if one has come or gone
  // since the last poll; empty otherwise, and where there are none. Costs one hypercall if nothing
  // has changed. Only if there are some, it presses the debug key, which writes a few lines on the
  // console. Error: Xen has livepatches that the console does not list; once for each change.
  absl::StatusOr<std::string> Poll();

 private:
  absl::StatusOr<std::string> List();

  std::unique_ptr<ConsoleCalls> calls_;
  LivepatchCount seen_;
};

}  // namespace xenoscope::sampler
