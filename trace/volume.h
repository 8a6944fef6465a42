// Counts the records and bytes of each event on each pCPU. The stream counts every record that it
// gives: what only needs to know how often something happened need not look at the records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "trace/events.h"

namespace xenoscope::trace {

struct RecordCount {
  uint64_t records = 0;
  uint64_t bytes = 0;

  void Add(uint64_t size) {
    ++records;
    bytes += size;
  }
  void Add(const RecordCount& other) {
    records += other.records;
    bytes += other.bytes;
  }
};

// The volume of one pCPU.
struct PcpuVolume {
  // Well-formed records of known events, padding and loss marks, by event.
  std::array<RecordCount, kEventCount> known{};
  // Records of unknown events, and of a size that no Xen writes, by the subclass of the event
  // number.
  std::array<RecordCount, static_cast<size_t>(TraceSubclass::kCount)> other{};

  void Add(const PcpuVolume& more) {
    for (size_t i = 0; i < known.size(); ++i) known[i].Add(more.known[i]);
    for (size_t i = 0; i < other.size(); ++i) other[i].Add(more.other[i]);
  }
};

class Volume {
 public:
  // Returns the pCPU's volume, which may be a new one.
  PcpuVolume& PcpuAt(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
    auto& slot = pcpus_[pcpu.value];
    if (slot == nullptr) slot = std::make_unique<PcpuVolume>();
    return *slot;
  }
  void Add(const Volume& more) {
    for (uint32_t i = 0; i < more.pcpus(); ++i) {
      if (more.Has(PcpuId{i})) PcpuAt(PcpuId{i}).Add(*more.pcpus_[i]);
    }
  }

  // Every pCPU number below this may have records.
  [[nodiscard]] uint32_t pcpus() const { return static_cast<uint32_t>(pcpus_.size()); }
  [[nodiscard]] bool Has(PcpuId pcpu) const {
    return pcpu.value < pcpus_.size() && pcpus_[pcpu.value] != nullptr;
  }
  // The next two: of a pCPU that Has() knows.
  [[nodiscard]] RecordCount Known(PcpuId pcpu, Event event) const {
    return pcpus_[pcpu.value]->known[static_cast<size_t>(event)];
  }
  [[nodiscard]] RecordCount Other(PcpuId pcpu, TraceSubclass subclass) const {
    return pcpus_[pcpu.value]->other[static_cast<size_t>(subclass)];
  }
  // Returns the number of well-formed records of the event on all pCPUs.
  [[nodiscard]] uint64_t Records(Event event) const {
    uint64_t records = 0;
    for (const auto& pcpu : pcpus_) {
      if (pcpu != nullptr) records += pcpu->known[static_cast<size_t>(event)].records;
    }
    return records;
  }
  [[nodiscard]] RecordCount Total() const {
    RecordCount total;
    for (const auto& pcpu : pcpus_) {
      if (pcpu == nullptr) continue;
      for (const RecordCount& count : pcpu->known) total.Add(count);
      for (const RecordCount& count : pcpu->other) total.Add(count);
    }
    return total;
  }

 private:
  std::vector<std::unique_ptr<PcpuVolume>> pcpus_;
};

}  // namespace xenoscope::trace
