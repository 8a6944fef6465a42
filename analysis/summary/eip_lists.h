// Lists of the guest addresses at which exits happened: each address is counted with the cycles
// spent outside the guest; the most frequent are listed with their functions, the rest as one
// remainder.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "analysis/analysis.h"
#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "correlate/exit_contents.h"

namespace xenoscope::analysis {

// The addresses of one vCPU, each with a tag that says what happened there.
class EipList {
 public:
  // Adds an exit of `length` cycles, 0 where that is not known. O(1); allocates as the table grows.
  void Add(Address eip, uint32_t tag, Cycles length, EntryBudget& budget) {
    Total& total = totals_.At({eip, tag}, kOthers, kMaxEntries, budget);
    ++total.count;
    total.cycles += length;
  }
  // Adds what was counted before; see BoundedTable::Prepend. `budget` is the earlier list's.
  void Prepend(EipList& earlier, EntryBudget& budget);
  // Adds a row "ADDRESS, NAME OF ITS TAG" for each of the most frequent.
  void Describe(DomainId domain, const TraceMetadata& metadata,
                absl::FunctionRef<std::string(uint32_t tag)> name, MetricGroup& group) const;

 private:
  struct Total {
    uint64_t count = 0;
    Cycles cycles = 0;
    Total& operator+=(const Total& more) {
      count += more.count;
      cycles += more.cycles;
      return *this;
    }
  };
  static constexpr uint32_t kMaxEntries = 8192;
  static constexpr TableKey kOthers{0, ~uint32_t{0}};
  BoundedTable<Total> totals_;
};

// The lists of an HVM vCPU: instructions that Xen emulated, instructions that accessed ports, and
// instructions that interrupts of the host interrupted.
class EipLists {
 public:
  static constexpr uint32_t kLists = 3;

  // Adds an exit. O(1); allocates as a table grows.
  void Add(const correlate::ExitContents& exit, EntryBudget& budget);
  // Adds what was counted before; see BoundedTable::Prepend. `budget` is the earlier lists'.
  void Prepend(EipLists& earlier, EntryBudget& budget);
  // Returns whether some list takes the exit. O(1).
  [[nodiscard]] static bool Takes(const correlate::ExitContents& exit);
  // Returns the groups that Describe adds.
  static std::vector<GroupInfo> Groups();
  // Adds the groups emulate_eip, port_eip and interrupt_eip.
  void Describe(DomainId domain, const TraceMetadata& metadata, Section& out) const;

 private:
  EipList emulated_;     // tag: an ExitKind
  EipList ports_;        // tag: an ExitKind << kPortBits | the port
  EipList interrupted_;  // tag: a vector, or kNoVectorTag
};

}  // namespace xenoscope::analysis
