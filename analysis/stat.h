// Count, sum and percentiles of lengths of time (cycles), in one pass and bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sketch.h"
#include "base/tsc.h"

namespace xenoscope::analysis {

// The weight of a length in percentiles: 1, or the length itself.
enum class Weighting : uint8_t { kByCount, kByTime };

// The figures of a set of lengths that reports show.
struct StatSummary {
  uint64_t count = 0;
  Cycles cycles = 0;
  Cycles p5 = 0;
  Cycles p50 = 0;
  Cycles p95 = 0;
};

// The statistics of a set of lengths in cycles. Percentiles are over lengths (kByCount) or over
// time (kByTime).
template <Weighting kWeighting>
class BasicStat {
 public:
  void Add(Cycles length) {
    ++count_;
    cycles_ += length;
    sketch_.Add(length, kWeighting == Weighting::kByTime ? length : 1);
  }
  void Merge(const BasicStat& other) {
    count_ += other.count_;
    cycles_ += other.cycles_;
    sketch_.Merge(other.sketch_);
  }

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] Cycles cycles() const { return cycles_; }
  [[nodiscard]] StatSummary Summary() const {
    return {.count = count_,
            .cycles = cycles_,
            .p5 = sketch_.Percentile(0.05),
            .p50 = sketch_.Percentile(0.5),
            .p95 = sketch_.Percentile(0.95)};
  }

 private:
  uint64_t count_ = 0;
  Cycles cycles_ = 0;
  Sketch sketch_;
};

// Adds the counts of `more` to those of `to`, element by element.
template <typename Counts>
void AddCounts(const Counts& more, Counts& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
}

using Stat = BasicStat<Weighting::kByCount>;
using TimeStat = BasicStat<Weighting::kByTime>;

}  // namespace xenoscope::analysis
