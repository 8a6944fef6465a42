// How many records and bytes of each event each pCPU has written. Counted for every record of the
// trace, so analyses that only need to know how often something happened need not subscribe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::analysis {

struct RecordCount {
  uint64_t records = 0;
  uint64_t bytes = 0;

  void Add(const RecordCount& other) {
    records += other.records;
    bytes += other.bytes;
  }
};

class Volume {
 public:
  // A well-formed record of a known event. O(1), a few instructions.
  void Add(const trace::Record& record) {
    Count(Of(record.pcpu).known[static_cast<size_t>(record.event)], record);
  }
  // Padding and loss marks, by their events; events that are not known, and records of a size that
  // no Xen writes, by the class that their number names.
  void AddRare(trace::ItemKind kind, const trace::Record& record) {
    Pcpu& pcpu = Of(record.pcpu);
    const bool named = kind == trace::ItemKind::kWrap || kind == trace::ItemKind::kLost;
    Count(named ? pcpu.known[static_cast<size_t>(record.event)]
                : pcpu.other[static_cast<size_t>(trace::SubclassOf(record.id))],
          record);
  }

  // Every pCPU number below this may have records.
  uint32_t pcpus() const { return static_cast<uint32_t>(pcpus_.size()); }
  bool Has(PcpuId pcpu) const {
    return pcpu.value < pcpus_.size() && pcpus_[pcpu.value] != nullptr;
  }
  // Of a pCPU that it has:
  RecordCount Known(PcpuId pcpu, trace::Event event) const {
    return pcpus_[pcpu.value]->known[static_cast<size_t>(event)];
  }
  RecordCount Other(PcpuId pcpu, trace::TraceSubclass subclass) const {
    return pcpus_[pcpu.value]->other[static_cast<size_t>(subclass)];
  }
  // Well-formed records of the event on all pCPUs.
  uint64_t Records(trace::Event event) const {
    uint64_t records = 0;
    for (const auto& pcpu : pcpus_) {
      if (pcpu != nullptr) records += pcpu->known[static_cast<size_t>(event)].records;
    }
    return records;
  }
  RecordCount Total() const {
    RecordCount total;
    for (const auto& pcpu : pcpus_) {
      if (pcpu == nullptr) continue;
      for (const RecordCount& count : pcpu->known) total.Add(count);
      for (const RecordCount& count : pcpu->other) total.Add(count);
    }
    return total;
  }

 private:
  struct Pcpu {
    std::array<RecordCount, trace::kEventCount> known{};
    std::array<RecordCount, static_cast<size_t>(trace::TraceSubclass::kCount)> other{};
  };

  static void Count(RecordCount& count, const trace::Record& record) {
    ++count.records;
    count.bytes += record.SizeBytes();
  }
  Pcpu& Of(PcpuId pcpu) {
    if (!Has(pcpu)) [[unlikely]] {
      Make(pcpu);
    }
    return *pcpus_[pcpu.value];
  }
  void Make(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
    pcpus_[pcpu.value] = std::make_unique<Pcpu>();
  }

  std::vector<std::unique_ptr<Pcpu>> pcpus_;
};

}  // namespace xenoscope::analysis
