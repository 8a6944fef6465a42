// What the list of livepatches asks of Xen: how many there are, a debug key, and what the console
// says. Behind an interface so that it can be held against a console that is made up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

struct LivepatchCount {
  uint32_t loaded = 0;
  uint32_t version = 0;  // another one whenever a livepatch came or went
};

class ConsoleCalls {
 public:
  virtual ~ConsoleCalls() = default;

  // 0, or -errno: -EOPNOTSUPP, -ENOSYS: this Xen was built without livepatches.
  virtual int CountLivepatches(LivepatchCount& count) = 0;
  // Xen does what the key stands for, here and now. 0 or -errno.
  virtual int PressKey(char key) = 0;
  // Appends at most 16 KiB of what the ring of Xen's console has from `index` on to `text`, and
  // moves `index` behind it; from the oldest on where the ring has lost that, or without an index.
  // Nothing is taken out. 0 or -errno.
  virtual int ReadConsole(bool from_index, uint32_t& index, std::string& text) = 0;
};

// Real Xen, by sysctl, in whichever of its interface's versions this Xen speaks. Errors as of
// OpenVcpuCalls().
absl::StatusOr<std::unique_ptr<ConsoleCalls>> OpenConsoleCalls();

}  // namespace xenoscope::sampler
