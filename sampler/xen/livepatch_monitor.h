// Which livepatches Xen has, and where: polled while a recording goes on, since they come and
// go.
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

  // What the console tells of the livepatches that there are (symbolizer/livepatches.h), if any has
  // come or gone since the last poll; else, and where there are none, nothing. A hypercall where
  // nothing has changed. Only where there are some is the debug key pressed, which writes a few
  // lines on the console. Error: Xen has some, and does not tell of all; once each time that it
  // would be polled.
  absl::StatusOr<std::string> Poll();

 private:
  absl::StatusOr<std::string> List();

  std::unique_ptr<ConsoleCalls> calls_;
  LivepatchCount seen_;
};

}  // namespace xenoscope::sampler
