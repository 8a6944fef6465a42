// Which part of lost time a vCPU runs, by the samples that it has beyond those of its known time:
// what lost time counts for among the places of a sample (docs/method.md, section 3.3).
#pragma once

#include "base/mode.h"
#include "base/tsc.h"

namespace xenoscope::correlate {

// Time and samples of all vCPUs. Times are in cycles, and of the time in which samples were taken.
class SampleRate {
 public:
  // Adds time in which the trace shows what a pCPU did. `in_vcpu`: it ran a vCPU that has samples.
  void AddKnown(Cycles cycles, bool in_vcpu) {
    known_ += static_cast<double>(cycles);
    if (in_vcpu) AddRunning(static_cast<double>(cycles));
  }
  // Adds known time, which was added before, of a vCPU that turns out to have samples.
  void AddRunning(double cycles) { running_ += cycles; }
  // Adds time in which the records of a pCPU were lost.
  void AddLost(Cycles cycles) { lost_ += static_cast<double>(cycles); }
  void AddSample() { samples_ += 1; }
  // Returns samples for each cycle that such vCPUs run, where they run in the same part of lost
  // time as of known time; 0 if there are none. O(1).
  [[nodiscard]] double PerCycle() const;

 private:
  double known_ = 0;
  double running_ = 0;
  double lost_ = 0;
  double samples_ = 0;
};

// Time and samples of one vCPU. Times are as above.
class LostTimePart {
 public:
  void AddRunning(Cycles cycles, SampleRate& rate) {
    running_ += static_cast<double>(cycles);
    rate.AddKnown(cycles, samples_ > 0);
  }
  // Adds a sample, of which `in_lost`, in [0, 1], is the weight in lost time.
  void AddSample(Mode mode, double in_lost, SampleRate& rate);

  // Returns the part of lost time in which the vCPU runs, in [0, 1]: `initial`, which is that of
  // known time, times e for each standard error by which the samples beyond those of known time
  // exceed the samples placed in lost time. O(1).
  [[nodiscard]] double Running(double initial, const SampleRate& rate) const;
  // Returns the part of the samples that are Xen's: `initial` as far as these are few. O(1).
  [[nodiscard]] double InXen(double initial) const;

 private:
  double samples_ = 0;
  double in_xen_ = 0;   // samples
  double in_lost_ = 0;  // samples
  double running_ = 0;  // cycles
};

}  // namespace xenoscope::correlate
