// What placed samples add up to: rows by any choice of dimensions, each with its samples, its share
// of all time, its cycles and its interval (docs/method.md, sections 4 and 5).
//
// Memory: rows and strata, and the samples of one running interval of each vCPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/interner.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "base/string_interner.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/estimate.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/stacks.h"
#include "correlate/stratum_unions.h"

namespace xenoscope::correlate {

enum class Dimension : uint8_t {
  kDomain,
  kVcpu,
  kPcpu,
  kMode,
  kExit,
  kImage,
  kFunction,
  kAddress,
  kProcess,
  kStack,
  kPlacing,
  kSubreason,
  kWaiting,
  kLine,
  kWakeup,
};
inline constexpr size_t kDimensions = 15;

struct ProfileOptions {
  std::vector<Dimension> by;
  // The event counts time (cycles): samples stand for cycles, and the trace's totals apply.
  bool is_time = true;
  // Cycles a sample stands for where no trace says it.
  double period = 0;
  bool parts = false;  // rows say which strata they are of
  // Asked only where rows are by line, once for each address.
  std::function<std::string(const PlacedSample&)> line_of{};
  InlinedAt inlined_at{};  // Stacks
};

// What a row has of one stratum (docs/method.md, section 4.1).
struct RowPart {
  VcpuRef vcpu;
  Context context;
  double samples = 0;          // of the row
  double stratum_samples = 0;  // of all rows
  uint64_t clusters = 0;       // running intervals that have samples of the stratum
  double stratum_cycles = 0;   // in samples, where the event does not count time
  double variance = 0;         // what it adds to that of the row's share
};

// Fields of dimensions that were not asked for are as they are made.
struct ProfileRow {
  DomainId domain;
  VcpuId vcpu;
  PcpuId pcpu;
  Mode mode = Mode::kUser;
  Context exit;  // with what it was about, and who waited, where that was asked for
  std::string image;
  std::string function;
  std::string line;
  Address address = 0;
  AddressSpaceId process;
  uint32_t stack = 0;  // of ProfileResult::stacks
  Placement placing = Placement::kUntraced;

  double samples = 0;          // a sum of weights
  double share = 0;            // of all time
  Interval interval;           // of the share
  double variance = 0;         // of the share; 0: it is known exactly
  double cycles = 0;           // 0 when the event does not count time
  std::vector<RowPart> parts;  // where ProfileOptions ask for them
};

// Sampled share of time against traced share of time (method.md §6).
struct DomainCheck {
  DomainId domain;
  double sampled = 0;
  double traced = 0;
  double error = 0;  // standard error of `sampled`
  bool Agrees() const;
};

struct Unresolved {
  std::string why;
  double samples = 0;
};

struct ProfileResult {
  std::vector<ProfileRow> rows;      // in no order
  std::vector<ProfileRow> domains;   // the same by domain alone
  std::vector<Stack> stacks;         // with addresses where rows are by address too
  std::vector<std::string> inlined;  // functions, by StackFrame::inlined
  std::vector<DomainCheck> checks;   // empty without a trace
  std::vector<Unresolved> unresolved;
  double samples = 0;           // attributed
  double cycles = 0;            // that they stand for
  double unsampled_cycles = 0;  // of these domains, in strata without a sample
};

class Profile : public PlacingObserver {
 public:
  // `resolver` must outlive the profile; it is asked only for images and functions.
  Profile(ProfileOptions options, Resolver& resolver);

  void OnPlaced(const PlacedSample& sample) override;
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override;
  void OnTraced(VcpuRef vcpu, Context context, Cycles cycles) override;

  // Called once, after the last sample. Internal: the rows do not sum to what was added.
  absl::StatusOr<ProfileResult> Finish();

 private:
  // A value for each dimension that was asked for.
  using Key = absl::InlinedVector<uint64_t, 4>;
  struct Stratum {
    VcpuRef vcpu;
    Context context;
    ClusterTotals totals;
    double size = 0;  // cycles
    uint32_t of_vcpu =
        StratumUnions::kNone;  // its number among the vCPU's, where rows can be of several
    // Of the cluster that is being closed; 0 between calls of Close.
    double in_cluster = 0;
    double length = 0;
  };
  // What a row has in a stratum.
  struct Part {
    uint32_t row = 0;
    uint32_t stratum = 0;
    uint32_t union_number = StratumUnions::kNone;
    ClusterSums sums;
    double in_cluster = 0;  // of the one that is being closed; 0 between calls of Close
    uint64_t closing = 0;   // the last that it had a part in
  };
  struct Rows {
    Interner<Key, 4096> keys;
    Interner<uint64_t, 4096> part_numbers;  // by row and stratum
    std::vector<Part> parts;
    uint32_t Find(const Key& key);
    uint32_t PartOf(uint32_t row, uint32_t stratum);
  };
  // A place of samples of a cluster that is not complete yet.
  struct PlaceWeight {
    uint32_t part = 0;  // of rows_
    double weight = 0;
    double length = 0;  // Place::length
  };
  struct Cluster {
    uint64_t number = 0;
    std::vector<PlaceWeight> weights;
  };
  // Those of a vCPU that are not complete: samples of different modes come nearly in order.
  struct Clusters {
    uint32_t domain = 0;  // of domains_
    std::array<Cluster, 4> open;
  };
  struct Names {
    uint32_t image = 0;
    uint32_t function = 0;
  };

  // What no trace measures is one stratum, whosever it is.
  uint32_t StratumOf(VcpuRef vcpu, Context context);
  Names NamesOf(const PlacedSample& placed);
  uint32_t LineOf(const PlacedSample& placed);
  bool Has(Dimension dimension) const {
    return places_[static_cast<size_t>(dimension)].has_value();
  }
  // The one of the run; where it is new, the oldest is closed.
  Cluster& ClusterOf(VcpuRef vcpu, uint64_t number);
  void Close(VcpuRef vcpu, uint32_t domain, Cluster& cluster);
  // What the row has in the stratum, for its union with others of the vCPU.
  uint32_t PartOf(uint32_t row, VcpuRef vcpu, uint32_t stratum);
  // The cluster's strata and rows, for the unions of strata.
  void AddToUnions(VcpuRef vcpu);
  // By union of the row: by what its strata's variances are multiplied, being no strangers to each
  // other.
  using Factors = absl::flat_hash_map<uint32_t, double>;
  Factors UnionFactors(const std::vector<const Part*>& parts) const;
  static void AddCluster(Part& part, double in_cluster, double in_stratum);
  // Returns whether the trace measured the strata.
  bool SizeStrata(ProfileResult& result);
  // The size of lost time by its samples, of which each stands for `rate` cycles by so many others:
  // no more than the pCPUs spent in it.
  void SizeLost(Stratum& lost, double rate, double traced_samples);
  // `exact`: the rows are unions of strata, whose sizes the trace knows.
  std::vector<ProfileRow> Estimate(const Rows& rows, bool exact, const ProfileResult& result) const;
  void CheckDomains(ProfileResult& result) const;

  ProfileOptions options_;
  Resolver* resolver_;
  // By dimension: where it is in a key, for one that was asked for.
  std::array<std::optional<size_t>, kDimensions> places_{};
  size_t keys_ = 0;        // how many those are
  bool by_place_ = false;  // a sample can be of several rows
  Interner<std::pair<VcpuRef, Context>, 256> stratum_numbers_;
  std::vector<Stratum> strata_;
  std::vector<uint32_t> parts_;  // of rows_, that the cluster at hand has; empty between calls
  uint64_t closed_ = 0;          // clusters
  bool has_unions_ = false;      // rows can be of several strata of a vCPU
  StratumUnions unions_;
  // Of the cluster at hand.
  std::vector<StratumUnions::Amount> strata_amounts_;
  std::vector<StratumUnions::Amount> union_amounts_;
  std::vector<double> union_scratch_;  // by union; all 0 between calls
  Rows rows_;
  Rows domains_;
  // Of the stratum of lost time: its number, and the variance of its size.
  std::optional<uint32_t> lost_stratum_;
  double lost_variance_ = 0;
  absl::flat_hash_map<VcpuRef, Clusters> clusters_;
  absl::flat_hash_map<DomainId, double> cluster_squares_;  // by domain: sum of n_c^2
  Stacks stacks_;
  StringInterner names_;
  absl::flat_hash_map<uint32_t, Names> names_of_function_;
  struct Code {
    DomainId domain;
    Mode mode = Mode::kUser;
    AddressSpaceId space;
    Address address = 0;
    bool operator==(const Code&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Code& code) {
      return H::combine(std::move(h), code.domain, code.mode, code.space.value, code.address);
    }
  };
  absl::flat_hash_map<Code, uint32_t> line_of_code_;
  absl::flat_hash_map<std::string, double> unresolved_;
  double samples_ = 0;
};

}  // namespace xenoscope::correlate
