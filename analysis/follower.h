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
    switch (record.event) {
      case trace::Event::kHvmVmexit:
      case trace::Event::kHvmSvmExit: {
        Held& held = Hold(record.pcpu);
        held.exit = {record.offset, record.tsc};
        held.entry.offset = 0;
        break;
      }
      case trace::Event::kHvmVmentry:
        Hold(record.pcpu).entry = {record.offset, record.tsc};
        break;
      default:
        GiveAll();  // it may be about a vCPU of another pCPU
        lane_.TakeRecord(record, purpose);
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
    Place entry;          // after the exit, if there is one
    bool listed = false;  // in holding_
  };

  Held& Hold(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) [[unlikely]] {
      pcpus_.resize(size_t{pcpu.value} + 1);
    }
    Held& held = pcpus_[pcpu.value];
    if (!held.listed) {
      held.listed = true;
      holding_.push_back(pcpu.value);
    }
    return held;
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
