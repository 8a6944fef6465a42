// One line of a dump, and the writers of the formats.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "report/dump/dump.h"
#include "report/dump/line_buffer.h"
#include "trace/record.h"

namespace xenoscope::report {

// The vCPU that runs on a pCPU, in one word: domain << 16 | vCPU, or one of the two values below.
using PackedVcpu = uint32_t;
inline constexpr PackedVcpu kUnknownVcpu = 0xffffffff;
inline constexpr PackedVcpu kRecordsLost = 0xfffffffe;

constexpr bool IsVcpu(PackedVcpu running_vcpu) { return running_vcpu < kRecordsLost; }
constexpr VcpuRef UnpackRunningVcpu(PackedVcpu running_vcpu) {
  return {DomainId{static_cast<uint16_t>(running_vcpu >> 16)}, VcpuId{running_vcpu & 0xffff}};
}

// Stands for cycles since a VMEXIT that was not seen. No std::optional, whose parts are written one
// after the other: reading both at once would wait for them.
inline constexpr Cycles kNoExit = ~Cycles{0};

// An item, with the vCPU that ran on its pCPU at that time.
struct DumpLine {
  const trace::Item* item = nullptr;
  size_t pcpu_index = 0;  // the index of the item's pCPU among the pCPUs of the trace
  PackedVcpu running_vcpu = kUnknownVcpu;
  Cycles exit_cycles = kNoExit;  // of a VMENTRY: those since the VMEXIT of its vCPU
};

// The most bytes that a line takes, without the marks of pCPUs.
inline constexpr size_t kMaxLineBytes = 2048;

// A writer of lines in one format.
class LineWriter {
 public:
  virtual ~LineWriter() = default;
  // Writes what comes before the first line.
  virtual void Begin(LineBuffer& out) const;
  // Says that `running_vcpu` runs on this pCPU from the next line on. It is called for every
  // change, and before the first line.
  virtual void SetRunningVcpu(size_t pcpu_index, PackedVcpu running_vcpu);
  virtual void Write(const DumpLine& line, LineBuffer& out) = 0;
};

// Makes a writer of the format that the function names. A writer is not thread-safe: each thread
// needs its own.
std::unique_ptr<LineWriter> MakeTextWriter(const DumpOptions& options,
                                           const std::vector<PcpuId>& pcpus);
std::unique_ptr<LineWriter> MakeJsonWriter(const DumpOptions& options);
std::unique_ptr<LineWriter> MakeCsvWriter(const DumpOptions& options);

// A conversion of cycles to nanoseconds by multiplication. The results equal those of
// Clock::Nanoseconds.
class FastClock {
 public:
  explicit FastClock(Clock clock) : hz_(clock.hz) {
    if (clock.hz <= kNano || clock.hz > kNano * 8) return;
    shift_ = static_cast<unsigned>(std::bit_width((clock.hz - 1) / kNano)) - 1;
    factor_ = static_cast<uint64_t>((static_cast<Wide>(kNano) << (64 + shift_)) / clock.hz) + 1;
  }

  uint64_t Nanoseconds(Cycles cycles) const {
    // The factor is too large by less than 1, so the product is too large by less than `cycles`.
    // That changes no whole number while cycles * hz < 2^(64 + shift), which holds for
    // less than a second at up to 8 GHz.
    if (factor_ == 0 || cycles >= hz_) [[unlikely]] {
      return Clock{hz_, ClockSource::kGiven}.Nanoseconds(cycles);
    }
    return static_cast<uint64_t>(static_cast<Wide>(cycles) * factor_ >> 64) >> shift_;
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr uint64_t kNano = 1'000'000'000;
  uint64_t hz_;
  // 2^(64 + shift_) * 10^9 / hz, rounded up; 0 for frequencies that it is not made for. The largest
  // shift with which it has 64 bits.
  uint64_t factor_ = 0;
  unsigned shift_ = 0;
};

// A clock for the times of lines: seconds since `zero` as 1.234567890, rounded down. Consecutive
// lines are close together, so that each line needs only the cycles since the last whole second.
class LineClock {
 public:
  // `clock.hz` is above 0.
  LineClock(Clock clock, Tsc zero) : clock_(clock), fast_(clock), zero_(zero) {}

  struct Time {
    bool negative = false;  // the time is before `zero`
    uint32_t seconds = 0;
    uint32_t nanoseconds = 0;
  };

  // Inlined: the parts of a returned Time would be written one after the other, and reading them at
  // once would wait for them.
  [[gnu::always_inline]] Time At(Tsc tsc) {
    const bool negative = tsc < zero_;
    const Cycles cycles = negative ? zero_ - tsc : tsc - zero_;
    if (cycles - whole_cycles_ >= clock_.hz) [[unlikely]] {
      // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): the constructor's condition
      whole_seconds_ = static_cast<uint32_t>(cycles / clock_.hz);
      whole_cycles_ = whole_seconds_ * clock_.hz;
    }
    return {negative, whole_seconds_,
            static_cast<uint32_t>(fast_.Nanoseconds(cycles - whole_cycles_))};
  }

 private:
  Clock clock_;
  FastClock fast_;
  Tsc zero_;
  uint32_t whole_seconds_ = 0;
  Cycles whole_cycles_ = 0;
};

// Puts "1.234567890", with a minus before it if the time is negative.
inline void PutSeconds(const LineClock::Time& time, LineBuffer& out) {
  if (time.negative) out.Put('-');
  out.PutDecimal(time.seconds);
  out.Put('.');
  out.PutNineDigits(time.nanoseconds);
}

}  // namespace xenoscope::report
