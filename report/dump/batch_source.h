// Divides a trace into batches, each of which has all items of a short time.
#pragma once

#include <array>
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

// When each vCPU left its guest, if it has not entered it since. The timeline says when that is not
// known any more. It is not given the exits themselves, of which it would keep far more.
class OpenExits final : public correlate::TimelineObserver {
 public:
  [[nodiscard]] bool WantsSegments() const override { return false; }
  [[nodiscard]] bool WantsExits() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnState(const correlate::VcpuTrack& vcpu, correlate::TimelineState /*before*/) override {
    using correlate::TimelineState;
    if (vcpu.state == TimelineState::kLost || vcpu.state == TimelineState::kUnknown) Forget(&vcpu);
  }

  // In these, null is a vCPU that is not known.
  void Begin(const correlate::VcpuTrack* vcpu, Tsc at) {
    if (vcpu != nullptr) Since(*vcpu) = at;
  }
  // Returns the cycles since the exit, or kNoExit.
  Cycles End(const correlate::VcpuTrack* vcpu, Tsc at) {
    if (vcpu == nullptr) return kNoExit;
    const Tsc since = std::exchange(Since(*vcpu), kNever);
    return since == kNever ? kNoExit : at - since;
  }
  void Forget(const correlate::VcpuTrack* vcpu) { End(vcpu, {}); }

 private:
  static constexpr Tsc kNever{~uint64_t{0}};

  Tsc& Since(const correlate::VcpuTrack& vcpu) {
    if (vcpu.index >= since_.size()) since_.resize(vcpu.index + 1, kNever);
    return since_[vcpu.index];
  }

  std::vector<Tsc> since_;  // by VcpuTrack::index
};

// Gives batches to threads. The records of a pCPU are decoded one after the other: a merge would go
// to another pCPU with almost every record.
class BatchSource {
 public:
  // `file`, `options` and `pcpus` outlive the source.
  BatchSource(const trace::TraceFile& file, const DumpOptions& options,
              const std::vector<PcpuId>& pcpus);

  // Takes the next batch, in the order of time. Returns false at the end. Thread-safe.
  bool Take(Batch& batch);

  // Returns the result for the batches that were taken so far. No thread may take a batch during
  // the call.
  [[nodiscard]] DumpResult Result() const { return {timeline_.faults().mismatches, last_}; }

 private:
  struct EntrySink;

  // What a record is followed for.
  enum class Use : uint8_t {
    kNone,
    kTimeline,  // it changes what the timeline knows
    kExit,      // a VMEXIT
    kEntry,     // a VMENTRY
  };
  // A place in the order of time and pCPU.
  using Place = std::pair<Tsc, uint16_t>;

  bool Fill(Batch& batch);
  // Chooses the length of the next batch. The last one had so many entries in so many cycles.
  void AdaptSpan(size_t entries, Cycles span);
  // Keeps the entries behind the place for the next batch.
  void Carry(Batch& batch, Place last);
  [[nodiscard]] Use UseOf(trace::Event event, bool shows_cycles) const;
  // Follows the vCPUs and their exits through a batch that has been sorted.
  void Follow(Batch& batch);
  void FollowNonRecord(const trace::Item& item);

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
  OpenExits exits_;
  correlate::Timeline timeline_;
  trace::Record record_;
  std::array<Use, trace::kEventCount> uses_{};  // by event
  // Those that are shown, and those that are followed.
  trace::EventTargets<trace::AnyTarget> wanted_{};
};

}  // namespace xenoscope::report
