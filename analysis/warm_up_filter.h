// A filter for the warm-up of a partition. The pipeline ends up in the state that all records would
// lead to, but most VM exits are left out: of the exits and entries of a pCPU between two other
// records that change the state, only the last ones matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/dispatcher.h"
#include "analysis/record_pipeline.h"
#include "trace/record.h"

namespace xenoscope::analysis {

class WarmUpFilter {
 public:
  // `pipeline` must outlive the filter, and its warm-up has started; `file` is the trace.
  WarmUpFilter(Bytes file, RecordPipeline& pipeline) : file_(file), pipeline_(pipeline) {}

  // Takes the next item of the stream, of either sort.
  void TakeNonRecord(const trace::Item& item) {
    Flush();
    pipeline_.TakeNonRecord(item);
  }
  void TakeRecord(const trace::Record& record, const Dispatcher::EventRoute& route) {
    switch (record.event) {
      case trace::Event::kHvmVmexit:
      case trace::Event::kHvmSvmExit: {
        DeferredExit& deferred = Defer(record.pcpu);
        deferred.exit = {record.offset, record.tsc, record.event};
        deferred.entry.offset = 0;
        break;
      }
      case trace::Event::kHvmVmentry:
        Defer(record.pcpu).entry = {record.offset, record.tsc, record.event};
        break;
      default:
        Flush();  // the record may be about a vCPU of another pCPU
        pipeline_.TakeRecord(record, route);
        break;
    }
  }
  // Hands on the records that are still held back.
  void Flush() {
    for (const uint32_t pcpu : deferred_pcpus_) {
      Forward(PcpuId{pcpu});
      pcpus_[pcpu].listed = false;
    }
    deferred_pcpus_.clear();
  }

 private:
  struct RecordRef {
    // Place of the record in the trace, in bytes; 0: none, as a file begins with a window's header.
    uint64_t offset = 0;
    Tsc tsc;
    trace::Event event = trace::Event::kUnknown;
  };
  // The last exit and entry of one pCPU since the last record that was handed on.
  struct DeferredExit {
    RecordRef exit;
    RecordRef entry;      // the entry after the exit, if there is one
    bool listed = false;  // whether the pCPU is in deferred_pcpus_
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
      trace::Record again;
      again.pcpu = pcpu;
      trace::ReadAgain(file_, record->offset, record->event, record->tsc, again);
      pipeline_.TakeRecord(again);
      record->offset = 0;
    }
  }

  Bytes file_;
  RecordPipeline& pipeline_;
  std::vector<DeferredExit> pcpus_;       // exits held back, by number of the pCPU
  std::vector<uint32_t> deferred_pcpus_;  // pCPUs that may have an exit held back
};

}  // namespace xenoscope::analysis
