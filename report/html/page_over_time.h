// When the samples of a page's rows were taken: what the page needs to show a range of time alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "correlate/binned_sums.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::report {

// Samples over time by vCPU, mode, VM exit and function. Lines and call chains of one function
// share its times: a page has too many of them to keep the times of each.
class PageOverTime {
 public:
  // The kind, nesting and reason of a context.
  using Exit = std::tuple<correlate::ContextKind, bool, uint32_t>;
  using Key = std::tuple<VcpuRef, Mode, Exit, std::string>;  // with the function's name
  using Times = absl::flat_hash_map<Key, std::vector<correlate::BinAmount>>;

  explicit PageOverTime(Resolver& resolver) : resolver_(resolver) {}

  [[nodiscard]] static Exit ExitOf(const correlate::Context& context) {
    return {context.kind, context.nested, context.reason};
  }

  // Counts the sample, evenly in the interval in which it was taken.
  void Add(const correlate::PlacedSample& placed);
  // Bounds the memory, after the last sample (BinnedSums::Finish).
  void Finish() { sums_.Finish(); }

  // The length of a bin of time.
  [[nodiscard]] Cycles width() const { return sums_.width(); }
  // Returns the part of all samples that are known only by an interval longer than a bin.
  [[nodiscard]] double WithoutTime() const;
  // Returns the samples of each key by bin. O(n log n).
  [[nodiscard]] Times ByKey() const;

 private:
  using Number = std::tuple<VcpuRef, Mode, Exit, uint32_t>;  // with the function's number

  Resolver& resolver_;
  absl::flat_hash_map<Number, uint32_t> numbers_;
  correlate::BinnedSums sums_;                  // by number
  std::array<double, 65> samples_by_length_{};  // by the binary logarithm of their interval
};

}  // namespace xenoscope::report
