#include "report/html/page_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "report/html/packed.h"
#include "report/html/page.h"
#include "report/markup.h"
#include "report/timeline/time_bins.h"
#include "trace/exit_name.h"
#include "trace/handled_interrupt.h"

namespace xenoscope::report {
namespace {

constexpr size_t kPcpuBinBytes = 3;  // of the page (report/html/web/src/data.ts)

using correlate::ExitArc;
using correlate::RunstateInterval;
using correlate::Segment;
using correlate::SegmentKind;
using correlate::TimelineState;
using nlohmann::ordered_json;

char Part(float cycles, uint64_t bin) {
  const double part = static_cast<double>(cycles) / static_cast<double>(bin);
  return static_cast<char>(static_cast<uint8_t>(std::lround(std::clamp(part, 0.0, 1.0) * 255)));
}

TrackPart PartOf(TimelineState state) {
  switch (state) {
    case TimelineState::kRunning:
      return TrackPart::kFirst;
    case TimelineState::kRunnable:
      return TrackPart::kSecond;
    case TimelineState::kBlocked:
      return TrackPart::kThird;
    case TimelineState::kOffline:
    case TimelineState::kLost:
    case TimelineState::kUnknown:
      break;
  }
  return TrackPart::kNone;
}

// What samples and exits take of the page of a small host, roughly: it is not known when intervals
// are packed. If it is more, they are made fewer; if it is less, the page shows somewhat fewer than
// it could.
constexpr size_t kBytesOfRest = 400'000;

// Returns how many of the bytes of all intervals those of the schedule may take.
size_t MostOfSchedule(size_t most_bytes) { return most_bytes / 4 * 3; }

}  // namespace

template <typename F>
void PageTimeline::ForEachSchedule(const std::vector<uint32_t>& known, F visit) {
  for (auto& [number, pcpu] : pcpus_) visit(pcpu.vcpus);
  for (const uint32_t i : known) visit(vcpus_[i].runstates);
}

template <typename F>
void PageTimeline::ForEachDetail(const std::vector<uint32_t>& known, F visit) {
  for (auto& [number, pcpu] : pcpus_) visit(pcpu.interrupts);
  for (const uint32_t i : known) visit(vcpus_[i].segments);
}

template <typename Code>
[[gnu::always_inline]] inline void PageTimeline::Schedule(IntervalTrack& track, const Code& code,
                                                          TrackPart part, uint64_t begin,
                                                          uint64_t length) {
  schedule_limit_.Add(track, code, part, begin, length,
                      [this](auto visit) { ForEachSchedule(KnownVcpus(), visit); });
}

template <typename Code>
[[gnu::always_inline]] inline void PageTimeline::Detail(IntervalTrack& track, const Code& code,
                                                        TrackPart part, uint64_t begin,
                                                        uint64_t length) {
  detail_limit_.Add(track, code, part, begin, length,
                    [this](auto visit) { ForEachDetail(KnownVcpus(), visit); });
}

void PageTimeline::OnRecord(const trace::Record& record, const correlate::Timeline& /*timeline*/) {
  if (record.event == trace::Event::kHwIrqHandled) OnInterrupt(record);
  if (record.event != trace::Event::kRunstateChange) return;
  NoteProgress(record.offset);
  if (trace::RunstateOld(record.id) != trace::Runstate::kBlocked ||
      trace::RunstateNew(record.id) != trace::Runstate::kRunnable) {
    return;
  }
  const auto woken = index_.find(trace::UnpackVcpu(record.payload.Word(0)));
  if (woken != index_.end()) vcpus_[woken->second].wake = {record.tsc, record.pcpu};
}

void PageTimeline::NoteProgress(uint64_t offset) {
  if (trace_bytes_ == 0) return;
  const double part = static_cast<double>(Number(offset)) / static_cast<double>(trace_bytes_);
  schedule_limit_.SetPartCome(part);
  detail_limit_.SetPartCome(part);
  exits_.SetPartCome(part);
}

void PageTimeline::OnInterrupt(const trace::Record& record) {
  const trace::HandledInterrupt handled = trace::DecodeHandledInterrupt(record);
  const auto shown = Shown(handled.range);
  if (!shown) return;
  const auto [begin, end] = *shown;
  ExtendTo(end);
  constexpr uint32_t kMostIrqs = 1U << 20U;
  Detail(PcpuAt(record.pcpu).interrupts, std::min(handled.irq, kMostIrqs), TrackPart::kFirst, begin,
         end - begin);
}

void PageTimeline::OnNonRecord(const trace::Item& item) {
  if (item.kind != trace::ItemKind::kLost || lost_.size() > 4 * kMaxLosses) return;
  if (const auto shown = Shown({item.first_lost, item.record.tsc})) {
    PcpuAt(item.record.pcpu);
    lost_.insert(lost_.end(), {Number(item.record.pcpu.value), Number((*shown)[0]),
                               Number((*shown)[1] - (*shown)[0]), Number(item.lost)});
  }
}

uint32_t PageTimeline::WakerOf(const Vcpu& vcpu, const RunstateInterval& interval) {
  const bool is_known =
      interval.cause == correlate::RunnableCause::kWake && vcpu.wake.at == interval.range.begin;
  return is_known ? vcpu.wake.by.value + 1 : 0;
}

PageTimeline::Vcpu& PageTimeline::NewVcpu(VcpuRef ref, uint32_t index) {
  if (index >= vcpus_.size()) {
    vcpus_.resize(size_t{index} + 1);
    SetMostBins();
  }
  Vcpu& vcpu = vcpus_[index];
  vcpu.ref = ref;
  vcpu.known = true;
  index_.try_emplace(ref, index);
  return vcpu;
}

void PageTimeline::ReduceResolution() {
  while (length_ > bin_length() * most_bins_) HalveResolution();
  covered_ = bin_length() * most_bins_;
}

void PageTimeline::HalveResolution() {
  ++bin_shift_;
  const auto halve = [](auto& bins, auto merge) {
    for (size_t i = 0; i < bins.size(); ++i) {
      auto both = bins[i];
      if (i % 2 == 0) {
        bins[i / 2] = both;
      } else {
        merge(bins[i / 2], both);
      }
    }
    bins.resize((bins.size() + 1) / 2);
  };
  for (Vcpu& vcpu : vcpus_) {
    vcpu.recent = nullptr;
    halve(vcpu.bins, [](VcpuBin& into, const VcpuBin& from) {
      for (size_t k = 0; k < kVcpuActivities; ++k) into.cycles.at(k) += from.cycles.at(k);
    });
  }
  for (auto& [number, pcpu] : pcpus_) {
    halve(pcpu.bins, [](PcpuBin& into, const PcpuBin& from) { into.Merge(from); });
  }
}

void PageTimeline::SetMostBins() {
  const size_t bytes = vcpus_.size() * kVcpuActivities + pcpus_.size() * kPcpuBinBytes;
  // One more is begun at the end of the last.
  most_bins_ = std::clamp<size_t>(kMaxBinBytes / bytes, 2, kBins + 1) - 1;
  covered_ = bin_length() * most_bins_;
}

PageTimeline::Pcpu& PageTimeline::PcpuAt(PcpuId pcpu) {
  if (pcpu.value >= pcpu_index_.size()) pcpu_index_.resize(size_t{pcpu.value} + 1);
  Pcpu*& known = pcpu_index_[pcpu.value];
  if (known == nullptr) {
    known = &pcpus_[pcpu.value];
    SetMostBins();
  }
  return *known;
}

template <typename F>
void PageTimeline::ForEachBinOf(uint64_t begin, uint64_t end, F part) const {
  const uint64_t first = begin >> bin_shift_;
  if (end <= (first + 1) << bin_shift_) [[likely]] {
    part(first, static_cast<float>(Number(end - begin)));
  } else {
    ForEachBin(begin, end, bin_length(), [&part](uint64_t bin, Cycles cycles) {
      part(bin, static_cast<float>(Number(cycles)));
    });
  }
}

void PageTimeline::AddToNewBins(Vcpu& vcpu, VcpuActivity activity, uint64_t begin,
                                uint64_t end) const {
  ForEachBinOf(begin, end, [&](uint64_t bin, float cycles) {
    if (bin >= vcpu.bins.size()) vcpu.bins.resize(bin + 1);
    vcpu.recent = &vcpu.bins[bin];
    vcpu.recent_number = bin;
    (*vcpu.recent)[activity] += cycles;
  });
}

uint32_t PageTimeline::KindOf(const Segment& segment) {
  const bool is_exit = segment.kind == SegmentKind::kExit;
  const uint32_t reason = is_exit ? segment.reason : 0;
  const uint64_t key = uint64_t{reason} << 8U | static_cast<uint64_t>(segment.kind) << 1U |
                       static_cast<uint64_t>(segment.nested);
  const uint32_t number = segment_kinds_.Intern(key, key);
  if (number == segment_codes_.size()) [[unlikely]] {
    std::string name = segment.nested ? "nested guest" : "guest";
    if (is_exit) name = trace::ExitName(report_.vendor, segment.nested, segment.reason);
    if (segment.kind == SegmentKind::kResume) name = "resume";
    segment_codes_.push_back(segment_names_.Intern(name));
  }
  return segment_codes_[number];
}

uint32_t PageTimeline::KindOf(const RunstateInterval& interval, const Vcpu& vcpu) {
  const RunKind kind{static_cast<uint32_t>(interval.state), static_cast<uint32_t>(interval.cause),
                     interval.pcpu.value, WakerOf(vcpu, interval)};
  return run_kinds_.Intern(
      kind, kind[0] | kind[1] << 4U | uint64_t{kind[2]} << 8U | uint64_t{kind[3]} << 32U);
}

void PageTimeline::OnRunstateInterval(const RunstateInterval& interval) {
  const auto shown = Shown(interval.range);
  exits_.OnRunstateInterval(interval);
  if (!shown || IsIdle(interval.vcpu)) return;
  const auto [begin, end] = *shown;
  ExtendTo(end);
  Vcpu& vcpu = VcpuAt(interval.vcpu, interval.vcpu_index);
  if (interval.state == TimelineState::kRunning) {
    Pcpu& pcpu = PcpuAt(interval.pcpu);
    std::vector<PcpuBin>& bins = pcpu.bins;
    ForEachBinOf(begin, end, [&](uint64_t bin, float cycles) {
      if (bin >= bins.size()) bins.resize(bin + 1);
      bins[bin].Add(interval.vcpu_index, cycles);
    });
    Schedule(pcpu.vcpus, interval.vcpu_index, TrackPart::kFirst, begin, end - begin);
  } else if (const auto activity = WaitActivityOf(interval.state)) {
    AddToBins(vcpu, *activity, begin, end);
  }
  const auto kind = [&] { return KindOf(interval, vcpu); };
  Schedule(vcpu.runstates, kind, PartOf(interval.state), begin, end - begin);
}

void PageTimeline::OnSegment(const Segment& segment) {
  const auto shown = Shown(segment.range);
  if (!shown || IsIdle(segment.vcpu)) return;
  const auto [begin, end] = *shown;
  ExtendTo(end);
  Vcpu& vcpu = VcpuAt(segment.vcpu, segment.vcpu_index);
  AddToBins(vcpu, ActivityOf(segment.kind), begin, end);
  if (segment.kind == SegmentKind::kExit) {
    const bool is_whole =
        segment.first && segment.completed && end - begin == segment.range.Length();
    if (is_whole) {
      vcpu.whole_exit = segment.exit;
    } else {
      exits_.AddTime(segment, {zero() + begin, zero() + end});
    }
  }
  if (segment.kind == SegmentKind::kUndivided) return;
  const bool in_guest = segment.kind == SegmentKind::kGuest;
  const auto kind = [&] { return KindOf(segment); };
  Detail(vcpu.segments, kind, in_guest ? TrackPart::kFirst : TrackPart::kSecond, begin,
         end - begin);
}

void PageTimeline::OnExit(const ExitArc& arc) {
  if (arc.vcpu_index < vcpus_.size() && vcpus_[arc.vcpu_index].whole_exit == arc.exit) {
    exits_.AddWholeExit(arc);
  } else if (arc.finished && Shown(arc.range)) {
    exits_.AddExit(arc);
  }
}

void PageTimeline::OnTimelineEnd() {
  exits_.Finish();
  ExtendTo(length_);
  packing_ = std::async(std::launch::async, [this, begin = zero()] { return Pack(begin); });
}

absl::Status PageTimeline::Pack(Tsc zero) {
  const std::vector<uint32_t> known = KnownVcpus();
  XENOSCOPE_ASSIGN_OR_RETURN(packed_bins_, Packed(AllBins(known)));
  const size_t left = BytesLeft(ordered_json::object(), pcpus());
  const size_t taken = packed_bins_.size() + kBytesOfRest;
  // AddIntervals will have as much in any case.
  const size_t room = std::max(kLeastRestBytes, left - std::min(left, taken));
  std::future<absl::Status> intervals =
      std::async(std::launch::async, [&] { return FitIntervals(known, room); });
  absl::StatusOr<ordered_json> exits = exits_.counts().ToJson(zero);
  XENOSCOPE_RETURN_IF_ERROR(intervals.get());
  XENOSCOPE_ASSIGN_OR_RETURN(packed_exits_, std::move(exits));
  return absl::OkStatus();
}

std::string PageTimeline::AllBins(const std::vector<uint32_t>& known) const {
  std::string bytes;
  for (const uint32_t i : known) bytes += BinsOf(vcpus_[i], bins());
  const std::vector<uint32_t> numbers = NumbersOf(known);
  for (const auto& [number, pcpu] : pcpus_) bytes += BinsOf(pcpu.bins, bins(), numbers);
  return bytes;
}

std::vector<uint32_t> PageTimeline::KnownVcpus() const {
  std::vector<uint32_t> known;
  for (uint32_t i = 0; i < vcpus_.size(); ++i) {
    if (vcpus_[i].known) known.push_back(i);
  }
  std::ranges::sort(known, {}, [this](uint32_t i) { return vcpus_[i].ref; });
  return known;
}

std::string PageTimeline::BinsOf(const Vcpu& vcpu, size_t bins) const {
  std::string bytes(bins * kVcpuActivities, '\0');
  for (size_t bin = 0; bin < std::min(bins, vcpu.bins.size()); ++bin) {
    for (size_t activity = 0; activity < kVcpuActivities; ++activity) {
      bytes[bin * kVcpuActivities + activity] =
          Part(vcpu.bins[bin].cycles.at(activity), bin_length());
    }
  }
  return bytes;
}

std::string PageTimeline::BinsOf(const std::vector<PcpuBin>& pcpu, size_t bins,
                                 const std::vector<uint32_t>& numbers) const {
  std::string bytes(bins * kPcpuBinBytes, '\0');
  for (size_t bin = 0; bin < std::min(bins, pcpu.size()); ++bin) {
    const uint32_t longest = pcpu[bin].LongestVcpu();
    const uint32_t vcpu = longest < numbers.size() ? numbers[longest] : 0;
    bytes[bin * kPcpuBinBytes] = Part(pcpu[bin].busy(), bin_length());
    bytes[bin * kPcpuBinBytes + 1] = static_cast<char>(static_cast<uint8_t>(vcpu));
    bytes[bin * kPcpuBinBytes + 2] = static_cast<char>(static_cast<uint8_t>(vcpu >> 8));
  }
  return bytes;
}

std::vector<uint32_t> PageTimeline::NumbersOf(const std::vector<uint32_t>& known) const {
  std::vector<uint32_t> numbers(vcpus_.size());
  for (uint32_t i = 0; i < known.size(); ++i) numbers[known[i]] = i;
  return numbers;
}

absl::Status PageTimeline::FitIntervals(const std::vector<uint32_t>& known, size_t most_bytes) {
  XENOSCOPE_RETURN_IF_ERROR(schedule_limit_.Fit(
      MostOfSchedule(most_bytes), [&](auto visit) { ForEachSchedule(known, visit); }));
  return detail_limit_.Fit(
      most_bytes - std::min(most_bytes, schedule_limit_.packed().packed.size()),
      [&](auto visit) { ForEachDetail(known, visit); });
}

absl::Status PageTimeline::AddIntervals(size_t most_bytes, ordered_json& timeline) {
  const std::vector<uint32_t> known = KnownVcpus();
  XENOSCOPE_RETURN_IF_ERROR(FitIntervals(known, most_bytes));
  ordered_json kinds = ordered_json::array();
  for (uint32_t i = 0; i < run_kinds_.size(); ++i) kinds.push_back(run_kinds_[i]);
  timeline["schedule"] = schedule_limit_.packed().ToJson();
  timeline["details"] = detail_limit_.packed().ToJson();
  timeline["run_kinds"] = std::move(kinds);
  timeline["segment_kinds"] = segment_names_.all();
  timeline["vcpu_numbers"] = NumbersOf(known);
  return absl::OkStatus();
}

absl::Status PageTimeline::AddTo(const PageSamples& samples, ordered_json& page) {
  XENOSCOPE_RETURN_IF_ERROR(packing_.get());
  const std::vector<uint32_t> known = KnownVcpus();
  const std::vector<uint32_t> numbers = NumbersOf(known);
  ordered_json vcpus = ordered_json::array();
  for (const uint32_t i : known) {
    const VcpuRef ref = vcpus_[i].ref;
    const std::string domain = DomainLabel(ref.domain, report_.domain_name(ref.domain));
    vcpus.push_back({{"domain", domain}, {"name", fmt::format("{} v{}", domain, ref.vcpu.value)}});
  }
  ordered_json pcpus = ordered_json::array();
  for (const auto& [number, pcpu] : pcpus_) pcpus.push_back(number);
  const Tsc begin = zero();
  const Cycles since = begin > origin_ ? begin - origin_ : 0;
  ordered_json timeline{{"length", length_},
                        {"begin_seconds", report_.clock.Seconds(since)},
                        {"begin_tsc", std::to_string(begin.value)},
                        {"vcpus", std::move(vcpus)},
                        {"pcpus", std::move(pcpus)},
                        {"bin", bin_length()},
                        {"bins", bins()},
                        {"lost", lost_}};
  samples.AddTo(timeline, shown(), [&](VcpuRef ref) -> std::optional<uint32_t> {
    const auto found = index_.find(ref);
    return found == index_.end() ? std::nullopt : std::optional(numbers[found->second]);
  });
  timeline["bin_bytes"] = std::move(packed_bins_);
  for (const char* key : {"counts", "cycles", "lengths", "length_steps"}) {
    timeline[std::string("exit_") + key] = std::move(packed_exits_[key]);
  }
  page["exits"] = std::move(packed_exits_["list"]);
  page["timeline"] = std::move(timeline);
  return absl::OkStatus();
}

}  // namespace xenoscope::report
