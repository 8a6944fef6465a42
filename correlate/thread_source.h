// Which threads the vCPUs of domains run, as the domains' own kernels say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"

namespace xenoscope::correlate {

// A vCPU's kernel puts another thread on it.
struct ThreadSwitch {
  VcpuRef vcpu;
  Tsc at;               // on the host's clock
  uint32_t thread = 0;  // Context::thread from then on
};

// What rows tell apart of a thread. Each but `pid` is a number of its kind, over all domains; 0:
// not known.
struct ThreadIdentity {
  uint32_t thread = 0;
  uint32_t process = 0;
  uint32_t container = 0;  // where the thread was then
  uint32_t pid = 0;        // the process's number in its domain's kernel
};

class ThreadSource {
 public:
  virtual ~ThreadSource() = default;

  // Returns the next switch in the order of time, if it comes before `until`.
  virtual std::optional<ThreadSwitch> Next(Tsc until) = 0;

  // Returns what a ThreadSwitch::thread stands for, which stays the same. May be called on any
  // thread.
  [[nodiscard]] virtual ThreadIdentity IdentityOf(uint32_t thread) const = 0;

  // Return the names of identities' numbers: "nginx (1235)", the same for its process, "shop". Not
  // to be called while another thread calls Next.
  [[nodiscard]] virtual std::string ThreadName(uint32_t thread) const = 0;
  [[nodiscard]] virtual std::string ProcessName(uint32_t process) const = 0;
  [[nodiscard]] virtual std::string ContainerName(uint32_t container) const = 0;
};

}  // namespace xenoscope::correlate
