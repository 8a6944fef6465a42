// Samples of a range of time.
#pragma once

#include <cstdint>

#include "base/tsc.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::profile {

// The samples of another source, which outlives it, whose brackets lie in `range`, [begin, end).
class SamplesWithin final : public correlate::SampleSource {
 public:
  SamplesWithin(correlate::SampleSource& source, TscRange range) : source_(source), range_(range) {}

  const recording::Sample* Next() override {
    const recording::Sample* sample = source_.Next();
    while (sample != nullptr &&
           (sample->when.begin < range_.begin || range_.end < sample->when.end)) {
      ++outside_;
      sample = source_.Next();
    }
    return sample;
  }

  // Returns the number of samples that were left out so far.
  uint64_t outside() const { return outside_; }

 private:
  correlate::SampleSource& source_;
  TscRange range_;
  uint64_t outside_ = 0;
};

}  // namespace xenoscope::profile
