// Where in the guest its exits were: instructions that Xen emulated, and those that interrupts of
// the host cut off. The most frequent are listed, the rest counted.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/analysis.h"
#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "analysis/exit_contents.h"

namespace xenoscope::analysis {

class EipLists {
 public:
  // O(1); allocates as a table grows.
  void Add(const ExitContents& exit, Room& room);
  // Adds what was counted before; see BoundedTable::Prepend. `room` is the earlier lists'.
  void Prepend(EipLists& earlier, Room& room);
  // Adds the groups emulate_eip and interrupt_eip.
  void Describe(DomainId domain, const Facts& facts, Section& out) const;

 private:
  static constexpr uint32_t kMost = 8192;
  struct List {
    BoundedTable<uint64_t> counts;
    uint64_t others = 0;
    void Add(const TableKey& key, Room& room);
    void Prepend(List& earlier, Room& room);
  };
  // Adds a row for each of the most frequent addresses.
  template <typename Name>
  static void DescribeList(const List& list, DomainId domain, const Facts& facts, Name&& name,
                           Group& group);

  List emulated_;     // tag: ExitKind
  List interrupted_;  // tag: vector, or kNoVectorTag
};

}  // namespace xenoscope::analysis
