// The calls to Xen for the list of livepatches: their number, a debug key, and the console's text;
// as an interface, so that tests can make a console up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

struct LivepatchCount {
  uint32_t loaded = 0;
  uint32_t version = 0;  // changes whenever a livepatch comes or goes
};

class ConsoleCalls {
 public:
  virtual ~ConsoleCalls() = default;

  // Returns 0, or -errno; -EOPNOTSUPP, -ENOSYS: this Xen was built without livepatches.
  virtual int CountLivepatches(LivepatchCount& count) = 0;
  // Makes Xen do at once what the debug key stands for. Returns 0 or -errno.
  virtual int PressKey(char key) = 0;
  // Appends at most 16 KiB of the console's ring from `index` on to `text`, and moves `index`
  // behind that; from the oldest text on where the ring has lost `index`, or if `from_index` is
  // false. The ring stays unchanged. Returns 0 or -errno.
  virtual int ReadConsole(bool from_index, uint32_t& index, std::string& text) = 0;
};

// Opens real Xen, by sysctl, in the version of the interface that this Xen has. Errors: as those of
// OpenVcpuCalls().
absl::StatusOr<std::unique_ptr<ConsoleCalls>> OpenConsoleCalls();

}  // namespace xenoscope::sampler
