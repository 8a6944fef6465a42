// Adds up what slices have of their traces: runstates, who waited for whom, VM exits, hypercalls,
// findings, and losses. These are counts and times, not estimates.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/document.h"
#include "base/tsc.h"
#include "store/slice.h"

namespace xenoscope::store {

class TraceTotals {
 public:
  // Cycles are those of a clock of `clock_hz`.
  explicit TraceTotals(uint64_t clock_hz) : clock_hz_(clock_hz) {}

  // Adds a slice, whose keys are in the dictionary: the same one in all calls, which may have
  // grown. O(its TraceSums).
  void Add(const Slice& slice, const Dictionary& dictionary);

  // Which rows are described.
  struct View {
    bool by_vcpu = false;                // a row for each vCPU in place of each domain
    std::vector<std::string> domains{};  // only these; empty: all
  };
  // Returns the groups runstates, waited_for, exits, hypercalls, findings and losses, of which the
  // first four have a row for each domain. Domains of one name are one. O(sums).
  [[nodiscard]] analysis::Section Describe(const View& view) const;
  // Returns the groups' descriptions.
  static std::vector<analysis::GroupInfo> Groups();

  // The lengths of all traces together, in cycles.
  [[nodiscard]] Cycles traced() const;
  [[nodiscard]] uint64_t slices() const { return slices_; }
  // The slices whose recordings had a trace.
  [[nodiscard]] uint64_t traced_slices() const;
  // Those of them that have hypercalls.
  [[nodiscard]] uint64_t hypercall_slices() const;
  [[nodiscard]] const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  struct Key {
    uint8_t figure = 0;
    VcpuNumber vcpu;
    std::string name;
    std::string part;
    std::string other;

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.figure, key.vcpu, key.name, key.part, key.other);
    }
  };
  struct Total {
    double count = 0;
    double cycles = 0;
  };
  // A row of a group, and its parts by name.
  struct Row {
    Total total;
    std::map<std::string, Row, std::less<>> parts;
  };
  using Rows = std::map<std::string, Row, std::less<>>;

  // Returns the rows of a figure by subject. Their parts are by `first`, and by `second` within; a
  // key without one of them is no part.
  [[nodiscard]] Rows RowsOf(TraceFigure figure, const View& view, std::string Key::*first,
                            std::string Key::*second) const;
  // Returns a row with its parts, of which those of most time come first.
  static analysis::MetricRow MetricRowOf(const std::string& name, const Row& row, bool counted);
  void DescribeRunstates(const View& view, analysis::Section& out) const;
  void DescribeFindings(const View& view, analysis::Section& out) const;
  void DescribeLosses(analysis::Section& out) const;
  // Returns a counter's sum; 0 where there is none.
  [[nodiscard]] uint64_t CounterOf(std::string_view name) const;

  uint64_t clock_hz_;
  std::vector<VcpuKey> vcpus_;  // those of the dictionary
  absl::flat_hash_map<Key, Total> totals_;
  std::map<std::string, double, std::less<>> counters_;
  std::vector<std::string> hosts_;
  uint64_t slices_ = 0;
};

}  // namespace xenoscope::store
