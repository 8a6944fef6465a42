// What the store keeps of a recording: the sums that estimates are made of, with names in place of
// the numbers that domains, functions and exit reasons have in one recording. They add up over
// slices of time and over hosts: estimates of any selection are those of one recording of it
// (docs/fleet.md).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mode.h"
#include "correlate/context.h"
#include "correlate/estimate.h"
#include "correlate/stratum_unions.h"
#include "correlate/transition_cost.h"

namespace xenoscope::store {

struct VcpuKey {
  std::string domain;  // its name; "d5" if it has none
  uint32_t number = 0;

  bool operator==(const VcpuKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const VcpuKey& key) {
    return H::combine(std::move(h), key.domain, key.number);
  }
};

// What a stratum of a vCPU is of (docs/method.md, section 4.1).
struct ContextKey {
  // kGuest and kTransition of a nested guest have this as their exit.
  static constexpr std::string_view kNested = "nested";

  correlate::ContextKind kind = correlate::ContextKind::kUntraced;
  std::string exit;             // kExit: "VMEXIT_CPUID"; else empty, or kNested
  bool has_both_modes = false;  // Stratum::has_both_modes

  bool operator==(const ContextKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ContextKey& key) {
    return H::combine(std::move(h), key.kind, key.exit, key.has_both_modes);
  }
};

// The columns of code, as bits of a set.
enum CodeColumn : uint8_t { kModeColumn = 1, kImageColumn = 2, kFunctionColumn = 4 };
inline constexpr uint8_t kAllCodeColumns = kModeColumn | kImageColumn | kFunctionColumn;

// The code of a sample. Fields of columns that are not in a set keep their defaults.
struct CodeKey {
  Mode mode = Mode::kUser;
  std::string image;
  std::string function;

  bool operator==(const CodeKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const CodeKey& key) {
    return H::combine(std::move(h), key.mode, key.image, key.function);
  }
};

// Returns the key with the fields of these columns alone.
[[nodiscard]] CodeKey Restrict(const CodeKey& key, uint8_t columns);

// Numbers of keys in a dictionary. They count up from 0.
struct VcpuNumber {
  uint32_t value = 0;
  auto operator<=>(const VcpuNumber&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const VcpuNumber& number) {
    return H::combine(std::move(h), number.value);
  }
};
struct ContextNumber {
  uint32_t value = 0;
  auto operator<=>(const ContextNumber&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ContextNumber& number) {
    return H::combine(std::move(h), number.value);
  }
};
struct CodeNumber {
  uint32_t value = 0;
  auto operator<=>(const CodeNumber&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const CodeNumber& number) {
    return H::combine(std::move(h), number.value);
  }
};

// Numbers keys in the order in which they first come.
template <typename Key, typename Number>
class KeyTable {
 public:
  // Returns the key's number. O(1) on the average.
  Number Intern(const Key& key) {
    const auto [at, is_new] =
        numbers_.try_emplace(key, Number{static_cast<uint32_t>(keys_.size())});
    if (is_new) keys_.push_back(key);
    return at->second;
  }
  const Key& operator[](Number number) const { return keys_[number.value]; }
  const std::vector<Key>& all() const { return keys_; }

 private:
  std::vector<Key> keys_;
  absl::flat_hash_map<Key, Number> numbers_;
};

// The keys of one slice, or of all slices that are read together.
struct Dictionary {
  KeyTable<VcpuKey, VcpuNumber> vcpus;
  KeyTable<ContextKey, ContextNumber> contexts;
  KeyTable<CodeKey, CodeNumber> codes;
};

// No vCPU: time that no trace measures is a stratum of all of them.
inline constexpr VcpuNumber kAllVcpus{~uint32_t{0}};
// No context: sums of a vCPU's contexts together.
inline constexpr ContextNumber kAllContexts{~uint32_t{0}};

struct StratumSums {
  VcpuNumber vcpu = kAllVcpus;
  ContextNumber context;
  double cycles = 0;  // from the trace; of lost time at most
  double stays = 0;   // Stratum::stays
  correlate::ClusterTotals totals;
};

struct VcpuSums {
  VcpuNumber vcpu;
  correlate::StratumUnions::VcpuSums clusters;
  double traced_squares = 0;  // ProfileSums::cluster_squares
  correlate::ModeSums modes;
  double stays = 0;         // in its guest, where their median is known
  double median_stays = 0;  // these times their median in cycles (ProfileSums::median_stays)
};

// Two strata of a vCPU, a <= b: the sum of the products of their samples in a cluster.
struct PairSums {
  VcpuNumber vcpu;
  ContextNumber a;
  ContextNumber b;
  double nn = 0;
};

// The samples of some code on a vCPU in one context.
struct PartSums {
  VcpuNumber vcpu;
  ContextNumber context;
  CodeNumber code;
  correlate::ClusterSums sums;
  // The sum of the products of the code's samples in a cluster, in all contexts, with the
  // stratum's.
  double union_xn = 0;
};

// The samples of some code on a vCPU in all contexts together.
struct UnionSums {
  VcpuNumber vcpu;
  CodeNumber code;
  correlate::StratumUnions::UnionSums sums;
};

// Sums over rows by mode, image and function give those by fewer columns, but for the squares: the
// square of a sum is more than the sum of squares, by the products of different rows in a cluster.
// This is by how much, where it is not 0.
struct CrossSums {
  uint8_t columns = 0;    // the fewer columns: a set of CodeColumn
  VcpuNumber vcpu;        // of the samples, whatever the stratum is of
  ContextNumber context;  // kAllContexts: of UnionSums
  CodeNumber code;        // with fields of these columns alone
  double xx = 0;
};

// A number of something that adds up: "samples", "placed.instant", "unresolved.no symbols for d3".
struct Counter {
  std::string name;
  double value = 0;
};

// What a trace's analyses count, and what stands out of it (TraceSums::figure).
enum TraceFigure : uint8_t {
  kRunstateFigure = 0,  // name: "runnable"; count: intervals that the trace has whole
  kWaitFigure = 1,      // name: why it was runnable; other: the domain that had the pCPU, or ""
  kExitFigure = 2,      // name: "VMEXIT_CPUID"; part: its subreason, or ""
  kFindingFigure = 3,   // name: the rule; other: the domain that it is about, or ""; of no vCPU
  // name: "vcpu_op"; part: its operation, or "". The time is that of the VM exits that the calls of
  // an HVM or PVH guest are; Xen's trace has no time of those of a PV guest.
  kHypercallFigure = 4,
};
inline constexpr uint8_t kLastTraceFigure = kHypercallFigure;

// A number of something that the trace shows of a vCPU, and the time of all of it. Those of a
// figure are exact and add up.
struct TraceSums {
  uint8_t figure = 0;  // a TraceFigure
  VcpuNumber vcpu = kAllVcpus;
  std::string name;
  std::string part;
  std::string other;  // the name of a domain
  double count = 0;
  double cycles = 0;
};

struct SliceHead {
  std::string host;
  // The time of day, in nanoseconds of UTC since 1970, [begin, end), and by how much it may be
  // wrong.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t clock_error_ns = 0;
  uint64_t clock_hz = 0;  // of the host's TSC, the unit of cycles
  std::string event;      // "cycles"
  bool is_time = true;    // whether samples of the event stand for time
  bool traced = true;     // whether the recording has a trace
  double period = 1;      // the cycles that a sample stands for where no trace says it
};

// The sums of one event in one slice of one host's time. Entries of the same keys add up.
struct SliceSums {
  std::vector<StratumSums> strata;
  std::vector<VcpuSums> vcpus;
  std::vector<PairSums> pairs;
  std::vector<PartSums> parts;
  std::vector<UnionSums> unions;
  std::vector<CrossSums> crosses;
  std::vector<Counter> counters;
  std::vector<TraceSums> trace;
};

struct Slice {
  SliceHead head;
  SliceSums sums;
  // Where a store has added up slices of one host, clock and period: how many, and the time between
  // them. The head's time is then from the first one's begin to the last one's end.
  uint64_t count = 1;
  int64_t gaps_ns = 0;
};

}  // namespace xenoscope::store
