// Adds up the samples of several events in rows, and estimates ratios of what the events counted:
// instructions per cycle, misses per thousand instructions (docs/method.md, section 9).
//
// Memory: a few sums for each row, and for each pair of events in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "correlate/estimate.h"

namespace xenoscope::correlate {

// A ratio of the counts of two events, numbered from 0 as in EventSums.
struct EventRatio {
  size_t numerator = 0;
  size_t denominator = 0;
  // The ratio if both events have one sample: the period of the numerator's event to that of the
  // denominator's, times the unit (1000 for "per thousand").
  double scale = 1;
};

// An estimated ratio.
struct RatioEstimate {
  std::optional<double> value;  // not set: the denominator has no sample
  double low = 0;               // the lower end of the 95 % interval
  std::optional<double> high;   // the upper end; not set: there is none
};

// What is known of two events in a row, and in all rows. Sums are over clusters c (section 5.2), in
// which a_c and b_c samples are of the row, and n_c and m_c of any row.
struct EventPair {
  double a = 0;  // sum of a_c: the row's samples of the numerator's event
  double b = 0;  // the same of the denominator's event
  double n = 0;  // sum of n_c: all samples of the numerator's event
  double m = 0;  // the same of the denominator's event
  double aa = 0, ab = 0, bb = 0;
  double an = 0, am = 0, bn = 0, bm = 0;
  double nn = 0, nm = 0, mm = 0;
  uint64_t clusters = 0;
  // Whether all that the counters counted is in `n` and `m`, so that these are known and not
  // random.
  bool complete = false;
};

// Returns the variance of log(a / b), which are both more than 0.
[[nodiscard]] double LogRatioVariance(const EventPair& pair);

// Returns the ratio a / b times `scale`, with its interval (section 9.2).
[[nodiscard]] RatioEstimate EstimateRatio(const EventPair& pair, double scale);

class EventSums {
 public:
  // For rows of any number and `events` events.
  explicit EventSums(size_t events) : events_(events), all_(MakeSums()) {}

  [[nodiscard]] size_t events() const { return events_; }

  // Adds samples of the event to the cluster at hand. O(1).
  void Add(uint32_t row, size_t event, double samples);
  // Ends the cluster. O(its rows * events^2).
  void EndCluster();

  // Returns the row's samples of the event.
  [[nodiscard]] double Samples(uint32_t row, size_t event) const {
    return row < rows_.size() ? rows_[row].x[event] : 0;
  }
  [[nodiscard]] double AllSamples(size_t event) const { return all_.x[event]; }
  // Returns the sums of the ratio's events in the row; in all rows together if there is no row.
  [[nodiscard]] EventPair PairOf(std::optional<uint32_t> row, const EventRatio& ratio) const;

 private:
  struct Sums {
    std::vector<double> x;           // by event: samples
    std::vector<double> xx;          // by two events: products of the row's samples in a cluster
    std::vector<double> xn;          // by two events: the row's samples of one, all of the other
    std::vector<double> in_cluster;  // by event: samples in the cluster at hand
    bool touched = false;            // whether the cluster at hand has the row
  };

  [[nodiscard]] Sums MakeSums() const;
  void AddCluster(Sums& sums) const;

  size_t events_;
  std::vector<Sums> rows_;
  Sums all_;
  std::vector<uint32_t> touched_;  // the rows of the cluster at hand
  uint64_t clusters_ = 0;
};

}  // namespace xenoscope::correlate
