// The machine's HPET as a source of NMIs at a fixed rate, one timer for each pCPU: the sampling
// clock for machines whose processors have no performance counters (QEMU without KVM).
//
// It needs Xen's boot option ro-hpet=0, Linux's iomem=relaxed, and one HPET timer beside timer 0
// for each pCPU. Registers: IA-PC HPET Specification 1.0a, section 2.3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/xenoprof/sampling_clock.h"

namespace xenoscope::sampler {

// The registers, by byte offset; 32 bits at a time, since QEMU splits 64-bit writes.
class HpetRegisters {
 public:
  virtual ~HpetRegisters() = default;
  virtual uint32_t Read(uint32_t offset) = 0;
  virtual void Write(uint32_t offset, uint32_t value) = 0;
};

// Opens the HPET at its usual place in physical memory, by /dev/mem. Errors say which boot option
// is missing.
absl::StatusOr<std::unique_ptr<HpetRegisters>> OpenHpet();

class HpetClock final : public SamplingClock {
 public:
  // Makes a clock of `hz` NMIs a second for each of the processors, given by their local APIC ids.
  // Errors: a rate of 0 or above the HPET's, too few timers, timers in use, HPET not running.
  static absl::StatusOr<std::unique_ptr<HpetClock>> Create(std::unique_ptr<HpetRegisters> registers,
                                                           uint32_t hz,
                                                           std::span<const uint32_t> apic_ids);
  // Stops timers that a killed session left running.
  static void StopStaleTimers(HpetRegisters& registers);

  absl::Status Start() override;
  void Stop() override;
  [[nodiscard]] uint64_t Sent() const override { return sent_; }

 private:
  HpetClock(std::unique_ptr<HpetRegisters> registers, uint32_t ticks,
            std::span<const uint32_t> apic_ids)
      : registers_(std::move(registers)),
        ticks_(ticks),
        apic_ids_(apic_ids.begin(), apic_ids.end()) {}

  // Returns the main counter, whose halves are read one after the other.
  uint64_t Counter();
  absl::Status StartTimer(uint32_t timer);

  std::unique_ptr<HpetRegisters> registers_;
  std::vector<uint64_t> started_;  // by timer: the counter one period before its first NMI
  uint64_t sent_ = 0;
  uint32_t ticks_;  // ticks of the HPET from NMI to NMI
  std::vector<uint32_t> apic_ids_;
};

}  // namespace xenoscope::sampler
