// Checks whether a domain's samples and its trace describe the same time (docs/method.md, section
// 6). They do not if there are samples where the trace says that nothing ran, if brackets are
// longer than timeslices, or if the samples are in step with what they sample.
//
// A timeslice is a running interval of a vCPU; its age at an instant is how long it has lasted by
// then. Memory: a few hundred bytes a vCPU.
#pragma once

#include <array>
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
    if (index < vcpus_.size()) [[likely]] {
      Vcpu& entry = vcpus_[index];
      if (entry.recent_begin <= from && from <= to && to <= entry.recent_end) {
        *entry.recent_time += to - from;
        return;
      }
    }
    AddAges(index, vcpu, from, to);
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
  struct Ages {
    // The time of ranges in the bins where they begin and where they end.
    std::array<Cycles, kBins> time{};
    // How many more ranges, mod 2^64, hold all of a bin than hold all of the one before.
    std::array<uint64_t, kBins> whole{};
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
    // The ages of the bin to which time was added last, and its time in `ages`: parts of a
    // timeslice follow each other. No age is in the range before.
    Cycles recent_begin = 1;
    Cycles recent_end = 0;
    Cycles* recent_time = nullptr;
  };

  [[nodiscard]] static size_t BinOf(Cycles age);
  static Cycles BinBegin(size_t bin);
  // Returns the time of each bin. O(bins).
  static std::array<double, kBins> TimeOf(const Ages& ages);
  static void Compare(const Ages& ages, PlacingCheck& check);
  Vcpu& VcpuAt(uint32_t index, VcpuRef vcpu);
  // Adds the time from one age of a timeslice to another.
  void AddAges(uint32_t index, VcpuRef vcpu, Cycles from, Cycles to);
  Ages& AgesOf(uint32_t index, VcpuRef vcpu);

  std::vector<Vcpu> vcpus_;
};

}  // namespace xenoscope::correlate
