// How many records and bytes of each event each pCPU has written. The stream counts every record
// that it gives, so whoever only needs to know how often something happened need not look at them.
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

// Of one pCPU.
struct PcpuVolume {
  // Well-formed records of known events; padding and loss marks, by their events.
  std::array<RecordCount, kEventCount> known{};
  // Events that are not known, and records of a size that no Xen writes, by the class that their
  // number names.
  std::array<RecordCount, static_cast<size_t>(TraceSubclass::kCount)> other{};

  void Add(const PcpuVolume& more) {
    for (size_t i = 0; i < known.size(); ++i) known[i].Add(more.known[i]);
    for (size_t i = 0; i < other.size(); ++i) other[i].Add(more.other[i]);
  }
};

class Volume {
 public:
  // Makes it if need be.
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
  uint32_t pcpus() const { return static_cast<uint32_t>(pcpus_.size()); }
  bool Has(PcpuId pcpu) const {
    return pcpu.value < pcpus_.size() && pcpus_[pcpu.value] != nullptr;
  }
  // Of a pCPU that it has:
  RecordCount Known(PcpuId pcpu, Event event) const {
    return pcpus_[pcpu.value]->known[static_cast<size_t>(event)];
  }
  RecordCount Other(PcpuId pcpu, TraceSubclass subclass) const {
    return pcpus_[pcpu.value]->other[static_cast<size_t>(subclass)];
  }
  // Well-formed records of the event on all pCPUs.
  uint64_t Records(Event event) const {
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
  std::vector<std::unique_ptr<PcpuVolume>> pcpus_;
};

}  // namespace xenoscope::trace
