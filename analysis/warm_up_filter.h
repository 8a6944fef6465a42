// Follows the part of a trace that comes before a thread's own: what a pipeline then knows is what
// it would know had it taken every record, but most VM exits are passed over. Of the exits and
// entries of a pCPU between two other records that change the state, only the last ones leave a
// trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/record_pipeline.h"
#include "trace/record.h"

namespace xenoscope::analysis {

class WarmUpFilter {
 public:
  // `pipeline` must outlive the filter, and has started following; `file` is the trace.
  WarmUpFilter(Bytes file, RecordPipeline& pipeline) : file_(file), pipeline_(pipeline) {}

  // Takes the next item of the stream, of either sort.
  void TakeNonRecord(const trace::Item& item) {
    Flush();
    pipeline_.TakeNonRecord(item);
  }
  void TakeRecord(const trace::Record& record, const void* target) {
    switch (record.event) {
      case trace::Event::kHvmVmexit:
      case trace::Event::kHvmSvmExit: {
        DeferredExit& deferred = Defer(record.pcpu);
        deferred.exit = {record.offset, record.tsc};
        deferred.entry.offset = 0;
        break;
      }
      case trace::Event::kHvmVmentry:
        Defer(record.pcpu).entry = {record.offset, record.tsc};
        break;
      default:
        Flush();  // it may be about a vCPU of another pCPU
        pipeline_.TakeRecord(record, target);
        break;
    }
  }
  // What is still held back.
  void Flush() {
    for (const uint32_t pcpu : deferred_pcpus_) {
      Forward(PcpuId{pcpu});
      pcpus_[pcpu].listed = false;
    }
    deferred_pcpus_.clear();
  }

 private:
  // Of one pCPU, since the last record that was given on.
  struct RecordRef {
    uint64_t offset = 0;  // 0: none; a file begins with a window's header
    Tsc tsc;
  };
  struct DeferredExit {
    RecordRef exit;
    RecordRef entry;      // after the exit, if there is one
    bool listed = false;  // in deferred_pcpus_
  };

  DeferredExit& Defer(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) [[unlikely]] {
      pcpus_.resize(size_t{pcpu.value} + 1);
    }
    DeferredExit& deferred = pcpus_[pcpu.value];
    if (!deferred.listed) {
      deferred.listed = true;
      deferred_pcpus_.push_back(pcpu.value);
    }
    return deferred;
  }
  void Forward(PcpuId pcpu) {
    for (RecordRef* record : {&pcpus_[pcpu.value].exit, &pcpus_[pcpu.value].entry}) {
      if (record->offset == 0) continue;
      pipeline_.TakeRecord(trace::RecordAt(file_, record->offset, record->tsc, pcpu));
      record->offset = 0;
    }
  }

  Bytes file_;
  RecordPipeline& pipeline_;
  std::vector<DeferredExit> pcpus_;       // by number
  std::vector<uint32_t> deferred_pcpus_;  // the pCPUs of which something may be held
};

}  // namespace xenoscope::analysis
