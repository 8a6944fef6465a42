// Learns how long after its NMI the record of a VM exit comes that the NMI has caused, from samples
// in Xen: no record can come while Xen handles the NMI of a sample (docs/method.md, section 3.4).
//
//   NMI in the guest ---- VM exit, handler of NMIs ---- record of the exit
//   |<--------------------- offset ---------------------------------->|
//   NMI in Xen ---- handler of NMIs ----| any record
//   |<------------ handler ------------>|
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/tsc.h"

namespace xenoscope::correlate {

// In cycles.
struct NmiOffset {
  Cycles offset = 0;   // from an NMI in a guest to the record of the exit
  Cycles handler = 0;  // from an NMI to the first record that can follow
};

// Counts for each instant, at which an NMI exit's record would have been had the sample been of the
// guest, where the records before it are. Memory: two numbers for each 32 cycles.
class NmiOffsetEstimator {
 public:
  static constexpr Cycles kBin = 32;         // the precision
  static constexpr Cycles kLongest = 16384;  // the longest offset that is found

  // The instant was `cycles`, less than kLongest, behind a record. O(1).
  void AddRecord(Cycles cycles) { ++records_.at(cycles / kBin); }
  // The sample was in Xen if its offset is in [begin, end). O(1).
  void AddInXen(Cycles begin, Cycles end);

  // Returns the offset at which no sample is in the time of the handler before a record, and most
  // samples are where Xen ran; null if chance explains both. O(kLongest / kBin).
  [[nodiscard]] std::optional<NmiOffset> Estimate() const;

 private:
  static constexpr size_t kBins = kLongest / kBin;

  std::array<uint32_t, kBins> records_{};
  // By offset: the samples that begin to be in Xen there, less those that cease to be.
  std::array<int64_t, kBins + 1> in_xen_{};
};

}  // namespace xenoscope::correlate
