#include "sampler/xenoprof/hpet_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

constexpr uint64_t kPhysicalAddress = 0xfed00000;
constexpr size_t kSize = 4096;

constexpr uint32_t kCapabilities = 0x000;
constexpr uint32_t kPeriod = 0x004;  // register with the length of a tick, in femtoseconds
constexpr uint32_t kConfiguration = 0x010;
constexpr uint32_t kEnabled = 1U << 0;
constexpr uint32_t kCounter = 0x0f0;

constexpr uint32_t Timer(uint32_t timer) { return 0x100 + 0x20 * timer; }
constexpr uint32_t Comparator(uint32_t timer) { return Timer(timer) + 0x08; }
constexpr uint32_t RouteData(uint32_t timer) { return Timer(timer) + 0x10; }
constexpr uint32_t RouteAddress(uint32_t timer) { return Timer(timer) + 0x14; }
constexpr uint32_t kInterruptEnable = 1U << 2;
constexpr uint32_t kPeriodic = 1U << 3;
constexpr uint32_t kSetValue = 1U << 6;
constexpr uint32_t k32Bits = 1U << 8;
constexpr uint32_t kMessages = 1U << 14;  // flag: interrupts are messages, not through the I/O APIC

// The message to a local APIC (Intel SDM volume 3, 11.11): to this processor, delivered as NMI.
constexpr uint32_t kMessageAddress = 0xfee00000;
constexpr uint32_t kNmi = 4U << 8;
constexpr uint32_t kDeliveryMode = 7U << 8;
constexpr uint32_t kMaxApicId = 0xff;

uint32_t Timers(HpetRegisters& registers) {
  return ((registers.Read(kCapabilities) >> 8) & 0x1f) + 1;
}

bool SendsNmis(HpetRegisters& registers, uint32_t timer) {
  const uint32_t needed = kInterruptEnable | kMessages;
  return (registers.Read(Timer(timer)) & needed) == needed &&
         (registers.Read(RouteData(timer)) & kDeliveryMode) == kNmi;
}

class MemoryRegisters final : public HpetRegisters {
 public:
  explicit MemoryRegisters(void* at) : at_(static_cast<volatile uint32_t*>(at)) {}
  MemoryRegisters(const MemoryRegisters&) = delete;
  MemoryRegisters& operator=(const MemoryRegisters&) = delete;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): mmap gave it without volatile
  ~MemoryRegisters() override { munmap(const_cast<uint32_t*>(at_), kSize); }

  uint32_t Read(uint32_t offset) override { return at_[offset / 4]; }
  void Write(uint32_t offset, uint32_t value) override { at_[offset / 4] = value; }

 private:
  volatile uint32_t* at_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HpetRegisters>> OpenHpet() {
  const int fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
  if (fd < 0) return ErrnoError(errno, "cannot open /dev/mem for --clock hpet");
  void* at = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  static_cast<off_t>(kPhysicalAddress));
  const int error = errno;
  close(fd);
  if (at == MAP_FAILED) {
    return ErrnoError(error,
                      "cannot map the HPET: boot Xen with ro-hpet=0 and dom0 with "
                      "iomem=relaxed");
  }
  return std::make_unique<MemoryRegisters>(at);
}

absl::StatusOr<std::unique_ptr<HpetClock>> HpetClock::Create(
    std::unique_ptr<HpetRegisters> registers, uint32_t hz, std::span<const uint32_t> apic_ids) {
  const uint32_t period = registers->Read(kPeriod);
  constexpr uint32_t kMaxPeriodFs = 100'000'000;  // limit of the specification
  if (period == 0 || period > kMaxPeriodFs) {
    return PreconditionError("there is no HPET at {:#x}", kPhysicalAddress);
  }
  const uint64_t rate = 1'000'000'000'000'000 / period;
  if (hz == 0 || hz > rate / 1000) {
    return InvalidError("--clock hpet:{}: the rate must be 1 to {} Hz", hz, rate / 1000);
  }
  if ((registers->Read(kConfiguration) & kEnabled) == 0) {
    return PreconditionError("the HPET is not running: boot Xen with clocksource=hpet");
  }
  if (Timers(*registers) < apic_ids.size() + 1) {
    return PreconditionError("{} pCPUs, and the HPET has {} timers beside its first",
                             apic_ids.size(), Timers(*registers) - 1);
  }
  for (uint32_t i = 0; i < apic_ids.size(); ++i) {
    if (apic_ids[i] > kMaxApicId) {
      return UnimplementedError("the HPET cannot reach the processor with APIC id {}", apic_ids[i]);
    }
    if ((registers->Read(Timer(i + 1)) & kInterruptEnable) != 0 && !SendsNmis(*registers, i + 1)) {
      return PreconditionError("HPET timer {} is in use: boot Xen with cpuidle=off", i + 1);
    }
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  return std::unique_ptr<HpetClock>(
      new HpetClock(std::move(registers), static_cast<uint32_t>(rate / hz), apic_ids));
}

void HpetClock::StopStaleTimers(HpetRegisters& registers) {
  for (uint32_t timer = 1; timer < Timers(registers); ++timer) {
    if (!SendsNmis(registers, timer)) continue;
    registers.Write(Timer(timer),
                    registers.Read(Timer(timer)) & ~(kInterruptEnable | kPeriodic | kMessages));
  }
}

uint64_t HpetClock::Counter() {
  while (true) {
    const uint32_t high = registers_->Read(kCounter + 4);
    const uint32_t low = registers_->Read(kCounter);
    if (registers_->Read(kCounter + 4) == high) return uint64_t{high} << 32 | low;
  }
}

// Until the second value is written QEMU takes the first one for the period, too: if this thread is
// preempted and the timer fires in between, the timer is silent for seconds.
absl::Status HpetClock::StartTimer(uint32_t timer) {
  constexpr int kMaxAttempts = 10;
  uint64_t first = ticks_;
  for (int i = 0; i < kMaxAttempts; ++i, first *= 2) {
    registers_->Write(Timer(timer), kInterruptEnable | kPeriodic | kSetValue | k32Bits | kMessages);
    const uint64_t now = Counter();
    registers_->Write(Comparator(timer), static_cast<uint32_t>(now + first));
    registers_->Write(Comparator(timer), ticks_);  // the period
    if (Counter() - now >= first) continue;
    started_.push_back(now + first - ticks_);
    return absl::OkStatus();
  }
  return absl::UnavailableError("--clock hpet: this host is too busy to start the HPET's timers");
}

absl::Status HpetClock::Start() {
  sent_ = 0;
  started_.clear();
  for (uint32_t i = 0; i < apic_ids_.size(); ++i) {
    const uint32_t timer = i + 1;
    registers_->Write(RouteData(timer), kNmi);
    registers_->Write(RouteAddress(timer), kMessageAddress | apic_ids_[i] << 12);
    XENOSCOPE_RETURN_IF_ERROR(StartTimer(timer));
  }
  return absl::OkStatus();
}

void HpetClock::Stop() {
  const uint64_t now = Counter();
  StopStaleTimers(*registers_);
  for (const uint64_t started : started_) sent_ += now < started ? 0 : (now - started) / ticks_;
  started_.clear();
}

}  // namespace xenoscope::sampler
