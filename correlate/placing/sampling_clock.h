// The clock by which samples of one event come. A hardware counter overflows each time when it has
// counted a period, so that samples may be even in time. Matched NMI exits of a vCPU show whether
// they are; then the instants of the samples between two such exits are predicted, with an error
// that is learnt from exits that are predicted as if they were not known (docs/method.md, section
// 3.4).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/tsc.h"
#include "correlate/placing/nmi_offset.h"

namespace xenoscope::correlate {

// The latest of a series of numbers.
class RecentNumbers {
 public:
  explicit RecentNumbers(size_t most) : most_(most) {}
  void Add(double number);
  [[nodiscard]] size_t size() const { return numbers_.size(); }
  // Returns the number below which `part` of them are; there is one at least. O(size).
  [[nodiscard]] double Quantile(double part) const;
  [[nodiscard]] double Mean() const;

 private:
  size_t most_;
  size_t next_ = 0;  // the oldest, once there are `most_`
  std::vector<double> numbers_;
};

class SamplingClock {
 public:
  // Learns from two NMI exits of one timeslice, `length` apart, whose samples followed each other
  // in the buffer but for some in Xen. O(1) amortised.
  void LearnPeriod(Cycles length, size_t in_xen);
  // Whether the samples are even, as far as such exits show it.
  [[nodiscard]] bool IsEven() const { return even_; }

  // Returns how many periods lie between two NMI exits; null if the samples are not even, or not
  // between these exits.
  [[nodiscard]] std::optional<size_t> PeriodsIn(Cycles length) const;
  // Returns at which time from the begin of a stretch of so many periods the record of the k-th
  // sample would have been, had it been an NMI exit, in cycles; `k` is in [0, periods].
  [[nodiscard]] double InstantIn(Cycles length, size_t periods, size_t k) const;

  // Learns from an NMI exit between two others, which are `before` and `after` cycles away, and so
  // many periods: how far it is from where they predict it.
  void LearnError(Cycles before, size_t periods_before, Cycles after, size_t periods_after);
  [[nodiscard]] NmiOffsetEstimator& offsets() { return offsets_; }
  // Looks anew at what was learnt. O(NmiOffsetEstimator::kLongest).
  void Update();

  // The offset of NMIs from records, if the instants of samples can be predicted.
  [[nodiscard]] const std::optional<NmiOffset>& offset() const { return offset_; }
  // How far samples may be from their predicted instants, in cycles.
  [[nodiscard]] double error() const { return error_; }

 private:
  RecentNumbers after_guest_{128};  // periods that begin with an NMI in the guest
  RecentNumbers after_xen_{128};    // those that begin with one in Xen
  RecentNumbers fits_{128};         // 1 for each length that is a sum of such periods, else 0
  RecentNumbers errors_{256};       // LearnError
  NmiOffsetEstimator offsets_;
  size_t learnt_ = 0;  // LearnPeriod
  bool even_ = false;
  double guest_period_ = 0;
  double xen_period_ = 0;
  std::optional<NmiOffset> offset_;
  double error_ = 0;
};

}  // namespace xenoscope::correlate
