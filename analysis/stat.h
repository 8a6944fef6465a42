// Count, sum and percentiles of lengths of time (cycles), in one pass and bounded memory.
// Percentiles cost most of the time and memory; Totals have none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/sketch.h"
#include "base/tsc.h"

namespace xenoscope::analysis {

// The figures of a set of lengths that reports show.
struct StatSummary {
  uint64_t count = 0;
  Cycles cycles = 0;
  Cycles p5 = 0;
  Cycles p50 = 0;
  Cycles p95 = 0;
};

// The number and the sum of a set of lengths in cycles.
class Totals {
 public:
  // O(1).
  void Add(Cycles length) {
    ++count_;
    cycles_ += length;
  }
  void Merge(const Totals& other) {
    count_ += other.count_;
    cycles_ += other.cycles_;
  }

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] Cycles cycles() const { return cycles_; }
  // Returns what a row shows, as BasicStat::Summary does.
  [[nodiscard]] const Totals& Summary() const { return *this; }

 private:
  uint64_t count_ = 0;
  Cycles cycles_ = 0;
};

// The statistics of a set of lengths in cycles. Percentiles are over lengths (kByCount) or over
// time (kByTime). The last lengths wait in one cache line until it is full: a host has thousands of
// such sets, which the processor's caches do not hold. The rest of a set is a second cache line,
// and what the sketch allocates.
template <Weighting kWeighting>
class alignas(64) BasicStat {
 public:
  // O(1); allocates when a value's octave is new.
  void Add(Cycles length) {
    if (length > std::numeric_limits<uint32_t>::max()) [[unlikely]] {
      return Count(length);
    }
    waiting_[waiting_count_++] = static_cast<uint32_t>(length);
    if (waiting_count_ == waiting_.size()) [[unlikely]] {
      CountWaiting();
    }
  }
  void Merge(const BasicStat& other) {
    other_total_ += other.other_total_;
    sketch_.Merge(other.sketch_);
    for (uint32_t i = 0; i < other.waiting_count_; ++i) Count(other.waiting_[i]);
  }

  [[nodiscard]] uint64_t count() const { return Counted() + waiting_count_; }
  [[nodiscard]] Cycles cycles() const {
    Cycles waiting = 0;
    for (uint32_t i = 0; i < waiting_count_; ++i) waiting += waiting_[i];
    return CountedCycles() + waiting;
  }
  [[nodiscard]] StatSummary Summary() const {
    if (waiting_count_ > 0) {
      BasicStat all;
      all.Merge(*this);
      return all.Summary();
    }
    return {.count = Counted(),
            .cycles = CountedCycles(),
            .p5 = sketch_.Percentile(0.05),
            .p50 = sketch_.Percentile(0.5),
            .p95 = sketch_.Percentile(0.95)};
  }

 private:
  static constexpr bool kByTime = kWeighting == Weighting::kByTime;

  // The number and the sum of the lengths that are in the sketch.
  [[nodiscard]] uint64_t Counted() const { return kByTime ? other_total_ : sketch_.total(); }
  [[nodiscard]] Cycles CountedCycles() const { return kByTime ? sketch_.total() : other_total_; }
  void Count(Cycles length) {
    sketch_.Add(length, kByTime ? length : 1);
    other_total_ += kByTime ? 1 : length;
  }
  // A function of its own, so that Add() stays small enough to be inlined.
  [[gnu::noinline]] void CountWaiting() {
    sketch_.AddAll(waiting_, kWeighting);
    for (const uint32_t length : waiting_) other_total_ += kByTime ? 1 : length;
    waiting_count_ = 0;
  }

  std::array<uint32_t, 15> waiting_;
  uint32_t waiting_count_ = 0;
  uint64_t other_total_ = 0;  // the sum of the lengths (kByCount), or their number (kByTime)
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
