// The phases of a boot in place of threads, for joining them with samples: the vCPU on which the
// thread is that boots "runs" the phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/thread_source.h"
#include "guests/boot/boot.h"

namespace xenoscope::guests {

class BootSwitches final : public correlate::ThreadSource {
 public:
  BootSwitches(DomainId domain, const Boot& boot);

  // O(1).
  std::optional<correlate::ThreadSwitch> Next(Tsc until) override;
  // A thread is a phase: its number is 1 + the index in Boot::parts.
  [[nodiscard]] correlate::ThreadIdentity IdentityOf(uint32_t thread) const override {
    return {.thread = thread};
  }
  [[nodiscard]] std::string ThreadName(uint32_t thread) const override { return names_.at(thread); }
  [[nodiscard]] std::string ProcessName(uint32_t /*process*/) const override { return {}; }
  [[nodiscard]] std::string ContainerName(uint32_t /*container*/) const override { return {}; }

 private:
  std::vector<std::string> names_ = std::vector<std::string>(1);
  std::vector<correlate::ThreadSwitch> switches_;  // in the order of time
  size_t next_ = 0;
};

}  // namespace xenoscope::guests
