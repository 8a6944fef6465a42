// What speaks against a domain's samples and trace telling of the same time (docs/method.md,
// section 6): samples where the trace says that nothing ran, brackets longer than timeslices, and
// samples in step with what they sample.
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

// Of one domain.
struct PlacingCheck {
  DomainId domain;
  uint64_t samples = 0;
  uint64_t impossible = 0;  // its vCPU did not run within their bracket, or not in their mode
  uint64_t bracketed = 0;
  double bracket = 0;    // mean length of theirs, in cycles
  double timeslice = 0;  // mean length of the timeslices that random instants fall into, in cycles
  uint64_t exact = 0;    // samples at known instants
  uint64_t missed = 0;   // whose instants are not known, where these are for others like them
  double distance = 0;   // largest, between the parts of these and of all time below some age

  bool HasImpossibleSamples() const;
  bool HasLongBrackets() const;
  // Samples that are uniform in time seem so in one of some million domains, whenever the missed
  // ones were.
  bool IsAliased() const;
};

class CrossChecks {
 public:
  // vCPUs are given by their index in the timeline. O(1), O(octaves) for time.
  void AddTimeslice(uint32_t index, VcpuRef vcpu, Cycles length);
  // The vCPU's timeslice that began at `timeslice` was where samples have known instants.
  void AddTime(uint32_t index, VcpuRef vcpu, TscRange range, Tsc timeslice);
  void AddExact(uint32_t index, VcpuRef vcpu, Cycles age);
  void AddBracketed(uint32_t index, VcpuRef vcpu, Cycles bracket);
  void AddOther(uint32_t index, VcpuRef vcpu) { ++VcpuAt(index, vcpu).samples; }
  void AddImpossible(uint32_t index, VcpuRef vcpu);
  // Of a sample that is also added otherwise: others like it have known instants.
  void AddMissed(uint32_t index, VcpuRef vcpu) { ++VcpuAt(index, vcpu).missed; }

  // Of the domains that have samples, in their order.
  std::vector<PlacingCheck> Conclude() const;

 private:
  // By age: four bins to an octave, from 2^8 to 2^36 cycles.
  static constexpr int kFirstOctave = 8;
  static constexpr int kOctaves = 28;
  static constexpr size_t kBins = kOctaves * 4 + 2;
  struct Ages {
    std::array<Cycles, kBins> time{};
    std::array<uint64_t, kBins> samples{};
  };
  struct Vcpu {
    VcpuRef ref;
    uint64_t samples = 0;
    uint64_t impossible = 0;
    uint64_t bracketed = 0;
    uint64_t missed = 0;
    double brackets = 0;           // sum of their lengths
    double timeslices = 0;         // sum of their lengths
    double timeslice_squares = 0;  // ... and of its squares
    std::unique_ptr<Ages> ages;
  };

  static size_t BinOf(Cycles age);
  static Cycles BinBegin(size_t bin);
  static void Compare(const Ages& ages, PlacingCheck& check);
  Vcpu& VcpuAt(uint32_t index, VcpuRef vcpu);
  Ages& AgesOf(uint32_t index, VcpuRef vcpu);

  std::vector<Vcpu> vcpus_;
};

}  // namespace xenoscope::correlate
