// Divides a trace into batches, each of which has all items of a short time.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "report/dump/batch.h"
#include "report/dump/dump.h"
#include "trace/cursor.h"
#include "trace/ordered_stream.h"
#include "trace/trace_file.h"

namespace xenoscope::report {

// Gives batches to threads. The records of a pCPU are decoded one after the other, which takes a
// third of the time of a merge that goes to another pCPU with almost every record.
class BatchSource {
 public:
  // `file`, `options` and `pcpus` outlive the source.
  BatchSource(const trace::TraceFile& file, const DumpOptions& options,
              const std::vector<PcpuId>& pcpus);

  // Takes the next batch, in the order of time. Returns false at the end. Thread-safe.
  bool Take(Batch& batch);

  // Returns the result for the batches that were taken so far. No thread may take a batch during
  // the call.
  [[nodiscard]] DumpResult Result() const { return {exits_.faults().mismatches, last_}; }

 private:
  struct EntrySink;

  // An observer for a timeline that is asked for open exits only.
  class NoObserver final : public correlate::TimelineObserver {
   public:
    [[nodiscard]] bool WantsSegments() const override { return false; }
    [[nodiscard]] bool WantsExits() const override { return false; }
    [[nodiscard]] bool WantsMarks() const override { return false; }
  };
  // A place in the order of time and pCPU.
  using Place = std::pair<Tsc, uint16_t>;

  bool Fill(Batch& batch);
  // Chooses the length of the next batch. The last one had so many entries in so many cycles.
  void AdaptSpan(size_t entries, Cycles span);
  // Keeps the entries behind the place for the next batch.
  void Carry(Batch& batch, Place last);
  // Follows the vCPUs and their exits through a batch that has been sorted.
  void Follow(Batch& batch);

  Bytes file_;
  const std::vector<PcpuId>& pcpus_;
  const size_t most_of_pcpu_;  // entries that a batch may have of one pCPU
  trace::OrderedStream stream_;
  Tsc through_;
  Cycles span_;                            // the length of the next batch
  std::vector<uint16_t> index_of_;         // the pCPUs' indices, by the number of the pCPU
  std::vector<PackedVcpu> running_vcpus_;  // the vCPUs that run, by the index of the pCPU
  Tsc last_;
  uint64_t next_number_ = 0;
  bool done_;

  // What was read, but is later than something that has not been.
  std::vector<Entry> carried_;  // in the order of pCPUs, their `place` in carried_specials_
  std::vector<trace::Item> carried_specials_;

  std::mutex mutex_;
  NoObserver no_observer_;
  correlate::Timeline exits_;                 // which exit of which vCPU is open
  std::bitset<trace::kEventCount> followed_;  // the events that exits_ takes
  // Those that are shown, and those that are followed.
  trace::EventTargets<trace::AnyTarget> wanted_{};
};

}  // namespace xenoscope::report
