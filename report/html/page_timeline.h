// The timeline of an HTML report: vCPUs on pCPUs, VM exits and interrupts. Its size is bounded,
// whatever the length of the trace: it keeps each interval up to a maximum, and shows short ones
// together beyond that. Bins of time beside them are for pictures of long ranges. When the trace
// becomes longer than the bins, pairs of bins are merged.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/interner.h"
#include "base/string_interner.h"
#include "base/tsc.h"
#include "correlate/pipeline_observer.h"
#include "report/html/interval_track.h"
#include "report/html/page_exit_list.h"
#include "report/html/page_samples.h"
#include "report/html/track_limit.h"
#include "report/profile/profile_view.h"
#include "report/timeline/time_bins.h"

namespace xenoscope::report {

class PageTimeline final : public correlate::TraceObserver {
 public:
  // The report must outlive this. It must have its vendor, names and sampled range, which is the
  // range shown, before the first item. `origin` is the time 0 of all commands: the first record of
  // the trace, also of a trace of which only a part is read. `trace_bytes` is the length of the
  // trace, if it is read to its end; otherwise 0.
  PageTimeline(const ProfileReport& report, Tsc origin, uint64_t trace_bytes = 0)
      : report_(report), origin_(origin), trace_bytes_(trace_bytes), exits_(report) {}

  [[nodiscard]] bool Wants(trace::Event event) const override {
    return event == trace::Event::kRunstateChange || event == trace::Event::kHwIrqHandled;
  }
  void OnRecord(const trace::Record& record, const correlate::Timeline& timeline) override;
  void OnNonRecord(const trace::Item& item) override;
  void OnTraceEnd(const correlate::Timeline& /*timeline*/) override {}

  // Begins to pack what the page has of the timeline, on a thread of its own: meanwhile the rest of
  // the page can be made. The report keeps its names and its vendor.
  void OnTimelineEnd() override;
  // Adds "timeline" without the intervals, and "exits", to the data of the page
  // (report/html/web/src/data.ts). To be called once, after OnTimelineEnd. Errors: Internal when
  // libdeflate fails.
  absl::Status AddTo(const PageSamples& samples, nlohmann::ordered_json& page);
  // Adds the intervals to "timeline", as what takes most bytes once it is known how many are left:
  // at most `most_bytes`. To be called once. Errors: Internal when libdeflate fails.
  absl::Status AddIntervals(size_t most_bytes, nlohmann::ordered_json& timeline);

  // The instant from which the page counts time.
  [[nodiscard]] Tsc zero() const { return std::max(origin_, report_.sampled.begin); }
  // The number of pCPUs that are shown.
  [[nodiscard]] size_t pcpus() const { return pcpus_.size(); }
  // What is shown.
  [[nodiscard]] TscRange shown() const { return {zero(), zero() + length_}; }

  // Maximum of entries of each list. Longer lists are no longer extended.
  static constexpr size_t kMaxIntervals = 1'000'000;
  static constexpr size_t kMaxLosses = 20'000;
  static constexpr size_t kBins = 8192;
  static constexpr size_t kMaxBinBytes = 2'000'000;  // bytes of all tracks in the page

 private:
  // A record that woke a vCPU, which the pCPU of the waker logs.
  struct Wake {
    Tsc at;
    PcpuId by;
  };
  struct Vcpu {
    VcpuRef ref;
    bool known = false;
    std::vector<VcpuBin> bins;
    IntervalTrack runstates;  // codes: numbers in run_kinds_; parts: running, runnable, blocked
    IntervalTrack segments;   // codes: numbers in segment_names_; parts: guest, Xen
    Wake wake;                // the last one
    // The bin to which time was added last, and its number; null: there is none. What comes next is
    // mostly of the same one.
    VcpuBin* recent = nullptr;
    uint64_t recent_number = 0;
    // The last exit that was one segment (ExitArc::exit), which is all shown.
    uint64_t whole_exit = 0;
  };
  struct Pcpu {
    std::vector<PcpuBin> bins;
    IntervalTrack vcpus;       // codes: VcpuTrack::index; parts: busy
    IntervalTrack interrupts;  // codes: the IRQ; parts: busy
  };

  void OnRunstateInterval(const correlate::RunstateInterval& interval) override;
  void OnSegment(const correlate::Segment& segment) override;
  void OnExit(const correlate::ExitArc& arc) override;
  void OnMark(const correlate::Mark& mark) override { exits_.OnMark(mark); }

  // Notes that the trace is read up to its byte `offset`.
  void NoteProgress(uint64_t offset);
  void OnInterrupt(const trace::Record& record);
  // Returns the number of the pCPU that woke the vCPU for this interval, and 1; 0 if it is not
  // known, or the vCPU was not woken.
  [[nodiscard]] static uint32_t WakerOf(const Vcpu& vcpu,
                                        const correlate::RunstateInterval& interval);

  // Returns the part of the range that is shown, from its beginning.
  [[nodiscard]] std::optional<std::array<uint64_t, 2>> Shown(TscRange range) const {
    const Tsc first = zero();
    const Tsc begin = std::max(range.begin, first);
    const Tsc end = std::min(range.end, report_.sampled.end);
    if (begin >= end) return std::nullopt;
    return std::array<uint64_t, 2>{begin.value - first.value, end.value - first.value};
  }
  Vcpu& VcpuAt(VcpuRef ref, uint32_t index) {
    if (index < vcpus_.size() && vcpus_[index].known) [[likely]] {
      return vcpus_[index];
    }
    return NewVcpu(ref, index);
  }
  Vcpu& NewVcpu(VcpuRef ref, uint32_t index);
  Pcpu& PcpuAt(PcpuId pcpu);
  [[nodiscard]] static int64_t Number(uint64_t value) { return static_cast<int64_t>(value); }
  // The number of bins that the page has.
  [[nodiscard]] size_t bins() const { return length_ / bin_length() + 1; }
  [[nodiscard]] uint64_t bin_length() const { return uint64_t{1} << bin_shift_; }
  void ExtendTo(uint64_t end) {
    length_ = std::max(length_, end);
    if (end > covered_) [[unlikely]] {
      ReduceResolution();
    }
  }
  // Sets the most bins that the page has: fewer where there are many tracks.
  void SetMostBins();
  // Merges pairs of bins until they hold all of length_.
  void ReduceResolution();
  void HalveResolution();
  void AddToBins(Vcpu& vcpu, VcpuActivity activity, uint64_t begin, uint64_t end) const {
    const uint64_t first = begin >> bin_shift_;
    if (vcpu.recent != nullptr && first == vcpu.recent_number && (end - 1) >> bin_shift_ == first)
        [[likely]] {
      (*vcpu.recent)[activity] += static_cast<float>(Number(end - begin));
    } else {
      AddToNewBins(vcpu, activity, begin, end);
    }
  }
  void AddToNewBins(Vcpu& vcpu, VcpuActivity activity, uint64_t begin, uint64_t end) const;
  // Calls part(bin, cycles) as report::ForEachBin, for bins of float. Nearly all ranges are within
  // one bin.
  template <typename F>
  void ForEachBinOf(uint64_t begin, uint64_t end, F part) const;
  // Add the interval to the track of this timeline, which is one of the schedule or of details.
  // `code` is its code, or returns it.
  template <typename Code>
  void Schedule(IntervalTrack& track, const Code& code, TrackPart part, uint64_t begin,
                uint64_t length);
  template <typename Code>
  void Detail(IntervalTrack& track, const Code& code, TrackPart part, uint64_t begin,
              uint64_t length);
  // Call visit(track) for what ran on pCPUs, then for the runstates of the vCPUs `known`; and for
  // interrupts of pCPUs, then for the segments of those vCPUs.
  template <typename F>
  void ForEachSchedule(const std::vector<uint32_t>& known, F visit);
  template <typename F>
  void ForEachDetail(const std::vector<uint32_t>& known, F visit);
  // Return the code of the segment's kind, which is a text of the page, and that of the interval's.
  uint32_t KindOf(const correlate::Segment& segment);
  uint32_t KindOf(const correlate::RunstateInterval& interval, const Vcpu& vcpu);

  // Packs what takes long to pack. `zero` is that of the page. Errors: Internal when libdeflate
  // fails.
  absl::Status Pack(Tsc zero);
  // Packs the intervals of the vCPUs `known`, which are shown, into at most so many bytes.
  absl::Status FitIntervals(const std::vector<uint32_t>& known, size_t most_bytes);
  // Returns the indices of the vCPUs that the page shows, in the order of their domains.
  [[nodiscard]] std::vector<uint32_t> KnownVcpus() const;
  // Returns all bins of those vCPUs, then those of all pCPUs, as the page has them.
  [[nodiscard]] std::string AllBins(const std::vector<uint32_t>& known) const;
  // Return the first `bins` bins as the page has them.
  [[nodiscard]] std::string BinsOf(const Vcpu& vcpu, size_t bins) const;
  [[nodiscard]] std::string BinsOf(const std::vector<PcpuBin>& pcpu, size_t bins,
                                   const std::vector<uint32_t>& numbers) const;
  // Returns the numbers in the page, by VcpuTrack::index, of those that it shows.
  [[nodiscard]] std::vector<uint32_t> NumbersOf(const std::vector<uint32_t>& known) const;

  const ProfileReport& report_;
  Tsc origin_;
  uint64_t trace_bytes_ = 0;  // 0: it is not known which part of the trace has been read
  uint64_t length_ = 0;
  size_t most_bins_ = kBins;
  unsigned bin_shift_ = 10;          // the binary logarithm of the length of a bin in cycles
  uint64_t covered_ = kBins << 10U;  // what so many bins hold, from the begin on
  std::vector<Vcpu> vcpus_;          // by VcpuTrack::index
  absl::flat_hash_map<VcpuRef, uint32_t> index_;
  std::map<uint32_t, Pcpu> pcpus_;
  std::vector<Pcpu*> pcpu_index_;  // those of pcpus_ by number; null: not known yet
  // The kinds of intervals: state, cause, pCPU and waker of runstates; exits of segments.
  using RunKind = std::array<uint32_t, 4>;
  Interner<RunKind, 256> run_kinds_;
  Interner<uint64_t, 64> segment_kinds_;
  std::vector<uint32_t> segment_codes_;  // the numbers of their names, by that of the kind
  StringInterner segment_names_;
  // Where VM exits are many, they are shown together, but timeslices are not.
  TrackLimit schedule_limit_{kMaxIntervals};
  TrackLimit detail_limit_{kMaxIntervals};
  std::vector<int64_t> lost_;
  PageExitList exits_;
  // What Pack makes, to be read when `packing_` is ready.
  nlohmann::ordered_json packed_exits_;  // PageExitList::ToJson
  std::string packed_bins_;              // of all vCPUs, then of all pCPUs
  std::future<absl::Status> packing_;
};

}  // namespace xenoscope::report
