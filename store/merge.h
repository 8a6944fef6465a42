// Adds slices up and estimates the profile of all of them: the one that a recording of all these
// hosts and times would have.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/string_interner.h"
#include "correlate/profile_sums.h"
#include "profile/profile_results.h"
#include "store/paged_numbers.h"
#include "store/store.h"

namespace xenoscope::store {

// The profile of slices, with the names of what rows have numbers for.
struct MergedProfile : profile::SampleSet, profile::ProfileResults {
  std::vector<std::string> domains;  // by DomainId: rows of one name are one row
  std::vector<std::string> exits;    // by the reason of contexts of exits
  uint64_t slices = 0;
  std::vector<std::string> hosts;
};

class Merger {
 public:
  // Rows are by these columns: any of host, domain, vcpu, mode, exit, image, function. Cycles are
  // those of a clock of `clock_hz`, or, if that is 0, of the first slice's. Errors
  // (InvalidArgument): another column.
  static absl::StatusOr<Merger> By(std::vector<correlate::Dimension> by, uint64_t clock_hz = 0);

  // Returns the sums that it needs.
  [[nodiscard]] WantedSums wanted() const {
    return {.profile = true, .unions = has_unions_, .trace = false};
  }

  // Functions get the names that `names` returns for theirs, so that several may be one. To be
  // called before Add; `names` outlives the merger's use.
  void NameBy(LateNames& names) { late_names_ = &names; }

  // Adds a slice, whose keys are in the dictionary: the same one in all calls, which may have
  // grown. Errors: InvalidArgument if the slice is of another event than the first one;
  // ResourceExhausted for more than 65,536 domains of different names. O(sums); less where slices
  // of one host follow each other.
  absl::Status Add(const Slice& slice, const Dictionary& dictionary);

  // Estimates the profile, with rows in the order of their names; called once. Errors: NotFound
  // without a slice; Internal.
  absl::StatusOr<MergedProfile> Finish();

 private:
  // A key of strata: the host, the vCPU, the context, and the period where that sizes the stratum.
  using StratumKey = std::tuple<uint32_t, VcpuRef, correlate::Context, double>;
  // names_ has not so many.
  static constexpr uint32_t kNotNamed = ~uint32_t{0};
  // The columns of code of a row, with numbers of names_.
  struct Code {
    Mode mode = Mode::kUser;
    uint32_t image = kNotNamed;
    uint32_t function = kNotNamed;
  };

  Merger(std::vector<correlate::Dimension> by, uint64_t clock_hz);

  [[nodiscard]] bool Has(correlate::Dimension dimension) const {
    return sums_.rows.layout.Has(dimension);
  }
  // What was found for a vCPU and a context together.
  struct Place {
    uint32_t stratum = 0;
    uint32_t of_vcpu = correlate::StratumUnions::kNone;  // Stratum::of_vcpu
    uint32_t domain_part = kUnknown;  // what the domain has of the stratum; kUnknown: not yet found
    bool traced = false;
  };
  static constexpr uint32_t kUnknown = ~uint32_t{0};
  // What a part has, in one half of a cache line.
  struct PartAmounts {
    correlate::ClusterSums sums;
    double union_xn = 0;  // the products of its row's union with its stratum
  };

  absl::Status Begin(const Slice& slice, const Dictionary& dictionary);
  // Returns what stands for the vCPU of the slice's host in strata.
  VcpuRef RefOf(VcpuNumber vcpu);
  [[nodiscard]] correlate::Context ContextOf(ContextNumber number);
  uint32_t StratumOf(VcpuNumber vcpu, ContextNumber context) {
    return places_[PlaceOf(vcpu, context)].stratum;
  }
  // Returns the number of the vCPU and context together, of this host alone.
  uint32_t PlaceOf(VcpuNumber vcpu, ContextNumber context);
  Place NewPlace(VcpuNumber vcpu, ContextNumber context);
  uint32_t NewStratumOf(VcpuNumber vcpu, ContextNumber context);
  // Returns what the row of that code has in the stratum of the vCPU and context.
  PartAmounts& AmountsOf(VcpuNumber vcpu, ContextNumber context, CodeNumber code);
  // Returns the number of the part of that row.
  uint32_t PartOf(VcpuNumber vcpu, uint32_t stratum, const Code& code);
  // Returns the row's union of the vCPU's strata.
  uint32_t UnionOf(VcpuNumber vcpu, CodeNumber code);
  uint32_t RowOf(VcpuNumber vcpu, const correlate::Context& context, const Code& code);
  const Code& CodeOf(CodeNumber number);
  // Returns what the vCPU's domain has of the stratum of that context.
  correlate::Part& DomainPartOf(VcpuNumber vcpu, ContextNumber context);

  // Sets, in the vCPU's stratum of transitions in the context, the stratum of its guest's time.
  void LinkToGuest(VcpuNumber vcpu, ContextNumber context, uint32_t transition);
  void ForgetHost();
  void AddStrata(const std::vector<StratumSums>& strata);
  void AddVcpus(const SliceSums& sums);
  void AddParts(const SliceSums& sums);
  void AddCrosses(const std::vector<CrossSums>& crosses);
  void AddCounters(const std::vector<Counter>& counters);
  // Moves amounts_ to the parts.
  void SetParts();
  void SetDimensions(const correlate::RowSums& rows, std::vector<correlate::ProfileRow>& out) const;

  uint64_t clock_hz_ = 0;    // 0: that of the first slice
  uint8_t columns_ = 0;      // the columns of code among those of rows
  bool has_unions_ = false;  // rows can be of several strata of a vCPU
  bool exact_ = false;       // rows are unions of strata
  correlate::ProfileSums sums_;
  MergedProfile out_;
  absl::flat_hash_map<StratumKey, uint32_t> strata_;
  absl::flat_hash_map<VcpuRef, std::pair<double, double>> medians_;  // stays, median_stays
  LateNames* late_names_ = nullptr;  // null: functions have the names of their slices
  // The slice that is being added.
  const Dictionary* dictionary_ = nullptr;
  uint32_t host_ = 0;
  double period_ = 1;
  double scale_ = 1;                  // from the cycles of its clock to those of the first slice's
  std::vector<PartAmounts> amounts_;  // by number of the part
  // What was found for the keys of the slice's host, in slices of the same period: places, and
  // their numbers by vCPU and context.
  absl::flat_hash_map<uint64_t, uint32_t> known_places_;
  std::vector<Place> places_;
  // Numbers of parts by place and code, and, at a vCPU's place of all contexts, unions.
  PagedNumbers known_parts_;
  // The last one of known_places_.
  uint64_t last_place_key_ = ~uint64_t{0};
  uint32_t last_place_ = 0;
  // Names.
  StringInterner hosts_;
  StringInterner domains_;
  StringInterner exits_;
  StringInterner names_;
  std::vector<Code> codes_;  // by CodeNumber
  StringInterner counters_;
  std::vector<double> counts_;                                          // by counter
  std::vector<DomainId> domain_of_;                                     // by VcpuNumber
  absl::flat_hash_map<std::pair<uint32_t, VcpuNumber>, VcpuRef> refs_;  // by host and vCPU
};

}  // namespace xenoscope::store
