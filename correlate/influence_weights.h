// Computes how much each sample of some rows moves their estimates: weights whose sums are the
// estimates, and whose squares are their variance, which includes that places are not known
// (docs/method.md, section 5.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace xenoscope::correlate {

// Weighs samples that can have been in `parts` places, and differ in nothing else. The samples come
// twice, in the same order: first Add for each, then, after Conclude, Weigh for each. Samples of
// one running interval with the same weights may come as one with a count.
class InfluenceWeights {
 public:
  // Begins with no samples. Weights that are added up, such as those of rows of one vCPU, need
  // different seeds.
  void Begin(size_t parts, uint32_t seed = 0);
  // Adds `count` samples, each with these weights by length and these expected weights, by part.
  // O(parts^2).
  void Add(std::span<const double> lengths, std::span<const double> expected, uint64_t count = 1);
  // O(parts^3).
  void Conclude();
  // Turns the expected weights of each of `count` samples into their influence. The sum over all
  // samples stays the same in each part, and so does the sum over all parts for each sample. A
  // weight may become negative, or be of a part where the sample cannot have been. O(parts^2).
  void Weigh(std::span<double> weights, uint64_t count = 1);

 private:
  // Returns the part's random sign for samples that came together.
  [[nodiscard]] double Sign(uint64_t group, size_t part) const;

  std::vector<double> lengths_;      // by part: sums of weights by length
  std::vector<double> expected_;     // by part: sums of expected weights
  std::vector<double> signs_;        // by part: means of random signs
  std::vector<double> crossed_;      // by part: means of their products with the group's sign
  std::vector<double> spread_;       // by part: the variance that no sample shows; 0: none
  std::vector<double> unknown_;      // by part: that of the sample at hand
  std::vector<double> information_;  // a square: sums of products of weights; then its factor
  uint64_t seed_ = 0;
  uint64_t samples_ = 0;  // the samples that were added
  double squares_ = 0;    // the sum of the squares of their counts
  uint64_t added_ = 0;    // calls of Add
  uint64_t weighed_ = 0;  // calls of Weigh
  bool open_ = false;     // a sample can have been in more than one part
};

}  // namespace xenoscope::correlate
