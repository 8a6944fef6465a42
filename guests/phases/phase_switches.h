// The phases of a boot or a shutdown in place of threads, for joining them with samples: a vCPU
// "runs" the phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "correlate/thread_source.h"
#include "guests/phases/phase_times.h"

namespace xenoscope::guests {

class PhaseSwitches final : public correlate::ThreadSource {
 public:
  // `switches` are in the order of time. A thread is a phase: its number is 1 + the index in
  // `phases`, 0: none.
  PhaseSwitches(std::span<const Phase> phases, std::vector<correlate::ThreadSwitch> switches);

  // O(1).
  std::optional<correlate::ThreadSwitch> Next(Tsc until) override;
  [[nodiscard]] correlate::ThreadIdentity IdentityOf(uint32_t thread) const override {
    return {.thread = thread};
  }
  [[nodiscard]] std::string ThreadName(uint32_t thread) const override { return names_.at(thread); }
  [[nodiscard]] std::string ProcessName(uint32_t /*process*/) const override { return {}; }
  [[nodiscard]] std::string ContainerName(uint32_t /*container*/) const override { return {}; }

 private:
  std::vector<std::string> names_ = std::vector<std::string>(1);
  std::vector<correlate::ThreadSwitch> switches_;
  size_t next_ = 0;
};

}  // namespace xenoscope::guests
