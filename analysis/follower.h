// Follows the part of a trace that comes before a thread's own: what a lane then knows is what it
// would know had it taken every record, but most VM exits are passed over. Of the exits and entries
// of a pCPU between two other records that change the state, only the last ones leave a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/lane.h"
#include "trace/record.h"

namespace xenoscope::analysis {

class Follower {
 public:
  // `lane` must outlive the follower, and has started following; `file` is the trace.
  Follower(Bytes file, Lane& lane) : file_(file), lane_(lane) {}

  // Takes the next item of the stream, of either sort.
  void TakeRare(const trace::Item& item) {
    GiveAll();
    lane_.TakeRare(item);
  }
  void TakeRecord(const trace::Record& record, const void* purpose) {
    Held& held = Of(record.pcpu);
    switch (record.event) {
      case trace::Event::kHvmVmexit:
      case trace::Event::kHvmSvmExit:
        List(held, record);
        held.exit = {record.offset, record.tsc};
        held.entry.offset = 0;
        break;
      case trace::Event::kHvmVmentry:
        if (held.entry_matters) {
          Give(record.pcpu);
          lane_.TakeRecord(record, purpose);
          held.entry_matters = false;
        } else {
          List(held, record);
          held.entry = {record.offset, record.tsc};
        }
        break;
      case trace::Event::kRunstateChange:
      case trace::Event::kContinueRunning:
      case trace::Event::kSchedDomRem:
      case trace::Event::kDom0DomRem:
        GiveAll();  // it may be about a vCPU of another pCPU
        lane_.TakeRecord(record, purpose);
        held.entry_matters = true;
        break;
      default:
        Give(record.pcpu);
        lane_.TakeRecord(record, purpose);
        held.entry_matters = true;
        break;
    }
  }
  // What is still held back.
  void GiveAll() {
    for (const uint32_t pcpu : holding_) {
      Give(PcpuId{pcpu});
      pcpus_[pcpu].listed = false;
    }
    holding_.clear();
  }

 private:
  // Of one pCPU, since the last record that was given on.
  struct Place {
    uint64_t offset = 0;  // 0: none; a file begins with a window's header
    Tsc tsc;
  };
  struct Held {
    Place exit;
    Place entry;                // after the exit, if there is one
    bool entry_matters = true;  // the next one: an interrupt or a new cr3 may wait for it
    bool listed = false;        // in holding_
  };

  Held& Of(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) [[unlikely]] {
      pcpus_.resize(size_t{pcpu.value} + 1);
    }
    return pcpus_[pcpu.value];
  }
  void List(Held& held, const trace::Record& record) {
    if (held.listed) return;
    held.listed = true;
    holding_.push_back(record.pcpu.value);
  }
  void Give(PcpuId pcpu) {
    for (Place* place : {&pcpus_[pcpu.value].exit, &pcpus_[pcpu.value].entry}) {
      if (place->offset == 0) continue;
      lane_.TakeRecord(trace::RecordAt(file_, place->offset, place->tsc, pcpu));
      place->offset = 0;
    }
  }

  Bytes file_;
  Lane& lane_;
  std::vector<Held> pcpus_;        // by number
  std::vector<uint32_t> holding_;  // the pCPUs of which something may be held
};

}  // namespace xenoscope::analysis
