// How much each sample of some rows moves their estimates: weights whose sums are the estimates and
// whose squares are what is not known of them, places that are open included (docs/method.md,
// section 5.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace xenoscope::correlate {

// Of samples that can have been in `parts` places, alike but for that. Twice the same samples in
// the same order: first Add for each, then, after Conclude, Weigh for each. Those of one running
// interval with the same weights may come as one with a count.
class InfluenceWeights {
 public:
  // Whatever is added up with others, such as rows of one vCPU, must have another seed each.
  void Begin(size_t parts, uint32_t seed = 0);
  // `count` samples: the weights of each by length and its expected weights, each by part.
  // O(parts^2).
  void Add(std::span<const double> lengths, std::span<const double> expected, uint64_t count = 1);
  // O(parts^3).
  void Conclude();
  // Turns the expected weights of each of `count` samples into its influence: over all samples
  // these have the same sum in each part, and over all parts the same sum for each sample; one may
  // be negative, or of a part where the sample cannot have been. O(parts^2).
  void Weigh(std::span<double> weights, uint64_t count = 1);

 private:
  // Of the random signs of samples that came together, the one for the part.
  double Sign(uint64_t group, size_t part) const;

  std::vector<double> lengths_;      // by part, sums of weights
  std::vector<double> expected_;     // likewise
  std::vector<double> signs_;        // likewise: means of random signs
  std::vector<double> crossed_;      // likewise: means of their products with the group's sign
  std::vector<double> spread_;       // likewise: of what no sample tells; 0: nothing to spread
  std::vector<double> unknown_;      // of the sample at hand, by part
  std::vector<double> information_;  // a square: sums of products of weights; then its factor
  uint64_t seed_ = 0;
  uint64_t samples_ = 0;  // that were added
  double squares_ = 0;    // of the counts with which they came
  uint64_t added_ = 0;    // calls of Add, and of Weigh
  uint64_t weighed_ = 0;
  bool open_ = false;  // some sample can have been in more than one part
};

}  // namespace xenoscope::correlate
