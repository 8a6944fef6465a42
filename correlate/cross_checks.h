// Checks whether a domain's samples and its trace describe the same time (docs/method.md, section
// 6). They do not if there are samples where the trace says that nothing ran, if brackets are
// longer than timeslices, or if the samples are in step with what they sample.
//
// A timeslice is a running interval of a vCPU; its age at an instant is how long it has lasted by
// then. Memory: some 3 KiB a vCPU.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"

namespace xenoscope::correlate {

// The checks of one domain.
struct PlacingCheck {
  DomainId domain;
  uint64_t samples = 0;
  uint64_t impossible = 0;  // samples whose vCPU did not run in their bracket, or not in their mode
  uint64_t bracketed = 0;   // samples that were placed by their brackets
  double bracket = 0;       // mean length of these brackets, in cycles
  uint64_t clocked = 0;     // samples that were placed by the sampling clock
  double clock_error = 0;   // how far these may be from their instants, on average, in cycles
  double timeslice = 0;     // mean length of the timeslices at random instants, in cycles
  uint64_t exact = 0;       // samples at known instants
  uint64_t missed = 0;      // samples at unknown instants, where others like them have known ones
  double ran = 0;           // the timeslices, in cycles
  double held = 0;          // cycles of them in which Xen's vPMU held a sample and took no other
  // The largest difference between the part of exact samples and the part of all time below an age.
  double distance = 0;

  [[nodiscard]] bool HasImpossibleSamples() const;
  [[nodiscard]] bool HasLongBrackets() const;
  // Whether samples are in step with timeslices. Samples that are uniform in time seem to be in one
  // of some million domains, whenever the missed ones were taken.
  [[nodiscard]] bool IsAliased() const;
};

// Collects what the checks compare.
class CrossChecks {
 public:
  // `index` is the vCPU's in the timeline. O(1).
  void AddTimeslice(uint32_t index, VcpuRef vcpu, Cycles length);
  // Adds a part of the timeslice that began at `timeslice`, in which samples have known instants.
  // O(1).
  void AddTime(uint32_t index, VcpuRef vcpu, TscRange range, Tsc timeslice) {
    const Cycles from = range.begin - timeslice;
    const Cycles to = range.end - timeslice;
    if (from >= to) return;  // clocks of pCPUs differ
    if (index >= vcpus_.size() || vcpus_[index].ages == nullptr) [[unlikely]] {
      AgesOf(index, vcpu);
    }
    Ages& ages = *vcpus_[index].ages;
    Bounds& begins = ages.bounds[BinOf(from)];
    ++begins.count;
    begins.ages += from;
    Bounds& ends = ages.bounds[BinOf(to)];
    --ends.count;
    ends.ages -= to;
  }
  void AddExact(uint32_t index, VcpuRef vcpu, Cycles age);
  void AddBracketed(uint32_t index, VcpuRef vcpu, Cycles bracket);
  // Adds a sample whose time the sampling clock predicts: a range of so many cycles.
  void AddClocked(uint32_t index, VcpuRef vcpu, Cycles range);
  void AddOther(uint32_t index, VcpuRef vcpu) { ++VcpuAt(index, vcpu).samples; }
  void AddImpossible(uint32_t index, VcpuRef vcpu);
  // Adds running time in which Xen held a sample.
  void AddHeld(uint32_t index, VcpuRef vcpu, Cycles length) { VcpuAt(index, vcpu).held += length; }
  // Counts a sample, which is also added by another function, as missed: others like it have known
  // instants.
  void AddMissed(uint32_t index, VcpuRef vcpu) { ++VcpuAt(index, vcpu).missed; }

  // Returns the checks of the domains that have samples, in the order of domains.
  [[nodiscard]] std::vector<PlacingCheck> Conclude() const;

 private:
  // Histograms by age: four bins to an octave, from 2^8 to 2^36 cycles.
  static constexpr int kFirstOctave = 8;
  static constexpr int kOctaves = 28;
  static constexpr size_t kBins = kOctaves * 4 + 2;
  // Bounds of ranges in a bin: begins count 1, and ends -1, mod 2^64. A range has as many cycles
  // below an age as the age is behind its begin, less those that it is behind its end: no branch
  // depends on how many bins a range is in.
  struct Bounds {
    uint64_t count = 0;
    uint64_t ages = 0;  // the sum of their ages, with their signs

    Bounds& operator+=(const Bounds& more) {
      count += more.count;
      ages += more.ages;
      return *this;
    }
  };
  struct Ages {
    std::array<Bounds, kBins> bounds{};
    std::array<uint64_t, kBins> samples{};
  };
  struct Vcpu {
    VcpuRef ref;
    uint64_t samples = 0;
    uint64_t impossible = 0;
    uint64_t bracketed = 0;
    uint64_t missed = 0;
    uint64_t clocked = 0;
    double brackets = 0;  // sum of the brackets' lengths
    double clock_errors = 0;
    double timeslices = 0;  // sum of the timeslices' lengths
    Cycles held = 0;
    double timeslice_squares = 0;  // sum of the squares of these lengths
    std::unique_ptr<Ages> ages;
  };

  [[nodiscard]] static size_t BinOf(Cycles age) {
    // The last age of the first bin, and the first one of the last bin.
    constexpr Cycles kFirst = (Cycles{1} << kFirstOctave) - 1;
    constexpr Cycles kLast = Cycles{1} << (kFirstOctave + kOctaves);
    const Cycles within = std::clamp(age, kFirst, kLast);
    const auto octave = static_cast<unsigned>(std::bit_width(within)) - 1;
    // The two bits behind the first one are the quarter of the octave.
    return size_t{octave} * 4 + (within >> (octave - 2)) - (kFirstOctave * 4 + 3);
  }
  static Cycles BinBegin(size_t bin);
  // Returns the time of each bin. O(bins).
  static std::array<double, kBins> TimeOf(const Ages& ages);
  static void Compare(const Ages& ages, PlacingCheck& check);
  Vcpu& VcpuAt(uint32_t index, VcpuRef vcpu);
  Ages& AgesOf(uint32_t index, VcpuRef vcpu);

  std::vector<Vcpu> vcpus_;
};

}  // namespace xenoscope::correlate
