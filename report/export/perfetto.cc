#include "report/export/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "report/export/timeline_names.h"
#include "report/markup.h"
#include "trace/exit_name.h"
#include "trace/handled_interrupt.h"

namespace xenoscope::report {
namespace {

using correlate::Mark;
using correlate::PlacedSample;
using correlate::RunstateInterval;
using correlate::Segment;
using correlate::SegmentKind;
using correlate::StackFrame;
using correlate::TimelineState;
using correlate::VcpuTrack;
using perfetto::CallstackField;
using perfetto::CounterField;
using perfetto::EventField;
using perfetto::FrameField;
using perfetto::InternedField;
using perfetto::kCounter;
using perfetto::kInstant;
using perfetto::kNeedsState;
using perfetto::kSequenceNumber;
using perfetto::kSliceBegin;
using perfetto::MappingField;
using perfetto::Message;
using perfetto::PacketField;
using perfetto::SampleField;
using perfetto::TextField;
using perfetto::TrackField;

// Returns the value of Profiling.CpuMode. The modes of dom0 are those of the host, as users see
// dom0 as the host.
int32_t CpuMode(DomainId domain, Mode mode) {
  switch (mode) {
    case Mode::kUser:
      return domain.value == 0 ? 2 : 5;
    case Mode::kKernel:
      return domain.value == 0 ? 1 : 4;
    case Mode::kXen:
      break;
  }
  return 3;
}

}  // namespace

PerfettoWriter::PerfettoWriter(const ProfileReport& report, Resolver& resolver,
                               correlate::StackOptions stacks, PerfettoPackets::Sink sink)
    : report_(report),
      resolver_(resolver),
      packets_(report.clock, std::move(sink)),
      stacks_(std::move(stacks)) {}

uint64_t PerfettoWriter::TrackNumber(Part part, uint64_t of) {
  return (static_cast<uint64_t>(part) + 1) << 32 | of;
}

void PerfettoWriter::OnRecord(const trace::Record& record) {
  packets_.Begin(record.tsc);
  now_ = record.tsc;
  if (record.event == trace::Event::kHwIrqHandled) PutInterrupt(record);
  if (const auto mark = trace::DecodeGuestMark(record)) {
    const size_t pcpu = record.pcpu.value;
    if (pcpu < runners_.size() && runners_[pcpu]) {
      guest_marks_.Add(*runners_[pcpu], record.tsc, *mark);
    }
  }
}

void PerfettoWriter::PutInterrupt(const trace::Record& record) {
  const trace::HandledInterrupt handled = trace::DecodeHandledInterrupt(record);
  const uint64_t track = TrackNumber(Part::kPcpuInterrupts, record.pcpu.value);
  if (record.pcpu.value >= interrupts_end_.size()) {
    interrupts_end_.resize(size_t{record.pcpu.value} + 1);
  }
  KnowPcpu(record.pcpu);
  Tsc& end = interrupts_end_[record.pcpu.value];
  if (end == Tsc{}) {
    packets_.PutTrack(track, TrackNumber(Part::kProcess, kPcpusPid),
                      fmt::format("pCPU {}: interrupts", record.pcpu.value));
  }
  // One may have interrupted another: slices of a track do not overlap.
  const TscRange range{std::max(handled.range.begin, end), handled.range.end};
  end = std::max(end, handled.range.end);
  if (range.Empty()) return;
  constexpr uint32_t kMostIrqs = 1U << 14U;  // names that are kept; Xen has fewer
  const bool is_known = handled.irq < kMostIrqs;
  packets_.PutSlice(track, range, is_known ? fmt::format("irq {}", handled.irq) : "irq");
}

void PerfettoWriter::OnNonRecord(const trace::Item& item) {
  now_ = item.record.tsc;
  if (item.kind != trace::ItemKind::kLost) return;
  KnowPcpu(item.record.pcpu);
  packets_.PutSlice(TrackNumber(Part::kPcpuLosses, item.record.pcpu.value),
                    {item.first_lost, item.record.tsc}, fmt::format("{} records lost", item.lost));
}

void PerfettoWriter::OnGuestMark(const trace::WholeGuestMark& mark) {
  const DomainId domain = mark.vcpu.domain;
  IndexOf(mark.vcpu);  // so that the domain has a process
  const std::string text = mark.text + (mark.complete ? "" : "...");
  const bool spans = mark.kind != trace::GuestMarkKind::kInstant;
  if (const auto span = spans ? SpanTrack(domain, text) : std::nullopt) {
    if (mark.kind == trace::GuestMarkKind::kEnd) {
      return packets_.PutSliceEnd(*span, mark.at);
    }
    return packets_.PutText(*span, mark.at, kSliceBegin, text);
  }
  const uint64_t track = TrackNumber(Part::kGuestMarks, domain.value);
  if (marking_.insert(domain).second) {
    packets_.PutTrack(track, TrackNumber(Part::kProcess, domain.value), "marks");
  }
  packets_.PutText(track, mark.at, kInstant,
                   spans ? fmt::format("{}: {}", ToString(mark.kind), text) : text);
}

std::optional<uint64_t> PerfettoWriter::SpanTrack(DomainId domain, const std::string& text) {
  constexpr size_t kMaxSpans = 4096;  // a guest may choose any texts
  const auto key = std::pair(domain, text);
  const auto found = spans_.find(key);
  if (found != spans_.end()) return found->second;
  if (spans_.size() >= kMaxSpans) return std::nullopt;
  const uint64_t track = TrackNumber(Part::kGuestSpans, spans_.size());
  spans_.emplace(key, track);
  packets_.PutTrack(track, TrackNumber(Part::kProcess, domain.value), Printable(text));
  return track;
}

void PerfettoWriter::OnRunstateInterval(const RunstateInterval& interval) {
  if (IsIdle(interval.vcpu) || interval.range.Empty()) return;
  KnowVcpu(interval.vcpu, interval.vcpu_index);
  packets_.PutSlice(TrackNumber(Part::kRunstates, interval.vcpu_index), interval.range,
                    RunstateName(interval));
  if (interval.state != TimelineState::kRunning) return;
  PutRun(interval);
  KnowPcpu(interval.pcpu);
  packets_.PutSlice(TrackNumber(Part::kPcpu, interval.pcpu.value), interval.range,
                    ToString(interval.vcpu));
}

void PerfettoWriter::PutRun(const RunstateInterval& interval) {
  if (interval.pcpu.value >= scheduled_.size()) scheduled_.resize(size_t{interval.pcpu.value} + 1);
  Scheduled& pcpu = scheduled_[interval.pcpu.value];
  const bool goes_on = pcpu.run && pcpu.run->vcpu_index == interval.vcpu_index &&
                       pcpu.run->end == interval.range.begin;
  if (!goes_on) {
    const bool follows = pcpu.run && pcpu.run->end == interval.range.begin;
    if (pcpu.run && !follows) PutSwitch(interval.pcpu, pcpu.run->end, std::nullopt);
    PutSwitch(interval.pcpu, interval.range.begin, interval.vcpu_index);
  }
  // Whether it is preempted at this end comes later (OnState).
  pcpu.run = Run{.vcpu_index = interval.vcpu_index, .end = interval.range.end};
}

void PerfettoWriter::PutSwitch(PcpuId pcpu, Tsc at, std::optional<uint32_t> to) {
  Scheduled& scheduled = scheduled_[pcpu.value];
  // Who ran until now; no vCPU, unless a run ends here.
  const auto& from = scheduled.run;
  const bool idle = scheduled.idle || !from;
  const std::string from_name = idle ? "" : ToString(vcpus_[from->vcpu_index].ref);
  const std::string to_name = to ? ToString(vcpus_[*to].ref) : "";
  const auto thread = [](uint32_t vcpu_index, const std::string& name) {
    return PerfettoSched::Thread{static_cast<int32_t>(kFirstTid + vcpu_index), name};
  };
  sched_.PutSwitch(pcpu.value, at,
                   idle ? PerfettoSched::Thread{} : thread(from->vcpu_index, from_name),
                   idle || from->preempted ? PerfettoSched::kRunnable : PerfettoSched::kSleeping,
                   to ? thread(*to, to_name) : PerfettoSched::Thread{});
  scheduled.idle = !to;
}

void PerfettoWriter::OnSegment(const Segment& segment) {
  if (IsIdle(segment.vcpu) || segment.range.Empty() || segment.kind == SegmentKind::kUndivided)
    return;
  KnowVcpu(segment.vcpu, segment.vcpu_index);
  KnowPcpu(segment.pcpu);
  const bool exit = segment.kind == SegmentKind::kExit;
  const std::string name = exit ? trace::ExitName(report_.vendor, segment.nested, segment.reason)
                                : ToString(segment.kind);
  packets_.PutSlice(TrackNumber(Part::kExits, segment.vcpu_index), segment.range, name);
  if (segment.kind == SegmentKind::kGuest) return;
  packets_.PutSlice(TrackNumber(Part::kPcpuExits, segment.pcpu.value), segment.range, name);
}

void PerfettoWriter::OnMark(const Mark& mark) {
  if (IsIdle(mark.vcpu)) return;
  KnowVcpu(mark.vcpu, mark.vcpu_index);
  packets_.PutInstant(TrackNumber(Part::kMarks, mark.vcpu_index), mark.tsc, MarkName(mark));
}

void PerfettoWriter::OnState(const VcpuTrack& vcpu, TimelineState before) {
  if (IsIdle(vcpu.ref)) return;
  const size_t pcpu = vcpu.pcpu.value;
  if (pcpu >= runners_.size()) runners_.resize(pcpu + 1);
  if (vcpu.state == TimelineState::kRunning) {
    runners_[pcpu] = vcpu.ref;
  } else if (runners_[pcpu] == vcpu.ref) {
    runners_[pcpu].reset();
  }
  if (before == TimelineState::kRunning && vcpu.state == TimelineState::kRunnable &&
      pcpu < scheduled_.size() && scheduled_[pcpu].run &&
      scheduled_[pcpu].run->vcpu_index == vcpu.index) {
    scheduled_[pcpu].run->preempted = true;
  }
  const int change = static_cast<int>(vcpu.state == TimelineState::kRunnable) -
                     static_cast<int>(before == TimelineState::kRunnable);
  if (change == 0) return;
  const uint64_t track = TrackNumber(Part::kRunnable, 0);
  if (!counts_runnable_) PutRunnableTrack(track);
  runnable_ += change;
  packets_.PutEvent(track, now_, kCounter, [this](Message<EventField>& event) {
    event.add_int64(EventField::kCounterValue, std::max<int64_t>(runnable_, 0));
  });
}

void PerfettoWriter::PutRunnableTrack(uint64_t track) {
  counts_runnable_ = true;
  std::string packet;
  Message<PacketField> message(packet);
  {
    Message<TrackField> put(message, PacketField::kTrack);
    put.add_uint64(TrackField::kUuid, track);
    put.add_string(TrackField::kName, "vCPUs waiting for a pCPU");
    Message<CounterField> counter(put, TrackField::kCounter);
    counter.add_string(CounterField::kUnitName, "vCPUs");
  }
  packets_.PutPacket(packet);
}

uint32_t PerfettoWriter::IndexOf(VcpuRef vcpu) {
  const auto found = index_.find(vcpu);
  if (found != index_.end()) return found->second;
  // The timeline has not reported this vCPU. The timeline numbers its vCPUs from 0.
  const auto index = static_cast<uint32_t>(0x10000 + index_.size());
  KnowVcpu(vcpu, index);
  return index;
}

void PerfettoWriter::KnowVcpu(VcpuRef ref, uint32_t index) {
  if (index >= vcpus_.size()) vcpus_.resize(size_t{index} + 1);
  if (vcpus_[index].known) return;
  vcpus_[index].known = true;
  vcpus_[index].ref = ref;
  index_.try_emplace(ref, index);
  const uint64_t process = TrackNumber(Part::kProcess, ref.domain.value);
  const uint32_t pid = kFirstPid + ref.domain.value;
  if (domains_.insert(ref.domain).second) {
    packets_.PutProcess(process, pid, DomainLabel(ref.domain, report_.domain_name(ref.domain)));
  }
  const uint64_t thread = TrackNumber(Part::kThread, index);
  packets_.PutThread(thread, pid, kFirstTid + index, ToString(ref));
  packets_.PutTrack(TrackNumber(Part::kRunstates, index), thread, "runstates");
  packets_.PutTrack(TrackNumber(Part::kExits, index), thread, "guest and exits");
  packets_.PutTrack(TrackNumber(Part::kMarks, index), thread, "hypercalls and traps");
}

void PerfettoWriter::KnowPcpu(PcpuId pcpu) {
  const uint64_t process = TrackNumber(Part::kProcess, kPcpusPid);
  if (pcpus_.empty()) packets_.PutProcess(process, kPcpusPid, "pCPUs");
  if (pcpu.value >= pcpus_.size()) pcpus_.resize(size_t{pcpu.value} + 1);
  if (pcpus_[pcpu.value]) return;
  pcpus_[pcpu.value] = true;
  packets_.PutTrack(TrackNumber(Part::kPcpu, pcpu.value), process,
                    fmt::format("pCPU {}", pcpu.value));
  packets_.PutTrack(TrackNumber(Part::kPcpuExits, pcpu.value), process,
                    fmt::format("pCPU {}: exits", pcpu.value));
  packets_.PutTrack(TrackNumber(Part::kPcpuLosses, pcpu.value), process,
                    fmt::format("pCPU {}: lost", pcpu.value));
}

void PerfettoWriter::OnPlaced(const PlacedSample& placed) {
  const uint32_t index = IndexOf(placed.vcpu);
  const bool instant = placed.when.Length() <= 1;
  if (!instant) {
    if (!vcpus_[index].drained) {
      vcpus_[index].drained = true;
      packets_.PutThread(TrackNumber(Part::kDrained, index), kFirstPid + placed.vcpu.domain.value,
                         kFirstDrainedTid + index,
                         fmt::format("{} (drained)", ToString(placed.vcpu)));
      packets_.PutTrack(TrackNumber(Part::kBrackets, index), TrackNumber(Part::kDrained, index),
                        "drain intervals of samples");
    }
    if (vcpus_[index].bracket != placed.when) {
      PutBracket(index);
      vcpus_[index].bracket = placed.when;
    }
    ++vcpus_[index].samples;
  }
  const uint64_t stack = StackNumber(placed);
  std::string packet;
  Message<PacketField> message(packet);
  message.add_uint64(PacketField::kTimestamp,
                     packets_.Time(instant ? placed.when.begin : placed.when.end));
  message.add_uint32(PacketField::kSequence, kSequenceNumber);
  message.add_uint32(PacketField::kFlags, kNeedsState);
  {
    Message<SampleField> sample(message, PacketField::kPerfSample);
    if (!placed.places.empty()) {
      const auto likeliest = std::ranges::max_element(placed.places, {}, &correlate::Place::weight);
      sample.add_uint32(SampleField::kCpu, likeliest->pcpu.value);
    }
    sample.add_uint32(SampleField::kPid, kFirstPid + placed.vcpu.domain.value);
    sample.add_uint32(SampleField::kTid, (instant ? kFirstTid : kFirstDrainedTid) + index);
    sample.add_uint64(SampleField::kCallstack, stack);
    sample.add_enum(SampleField::kMode, CpuMode(placed.vcpu.domain, placed.mode()));
  }
  packets_.PutPacket(packet);
}

// Puts the bracket of a vCPU. The brackets of one buffer follow each other.
void PerfettoWriter::PutBracket(uint32_t index) {
  Vcpu& vcpu = vcpus_[index];
  if (vcpu.samples > 0) {
    packets_.PutSlice(TrackNumber(Part::kBrackets, index), vcpu.bracket,
                      fmt::format("{} samples", vcpu.samples));
  }
  vcpu.samples = 0;
}

uint64_t PerfettoWriter::FrameNumber(const StackFrame& frame) {
  const auto [at, is_new] = frames_.try_emplace(frame, frames_.size() + 1);
  if (!is_new) return at->second;
  const bool is_code =
      frame.kind == StackFrame::Kind::kFunction || frame.kind == StackFrame::Kind::kInlined;
  const std::string path = is_code ? resolver_.Describe(frame.function).image : "[exit]";
  Message<InternedField> interned(packets_.interned());
  const auto put_text = [&](InternedField field, uint64_t number, const std::string& words) {
    Message<TextField> text(interned, field);
    text.add_uint64(TextField::kIid, number);
    text.add_bytes(TextField::kText, words);
  };
  const auto [name, new_name] = functions_.try_emplace(
      Printable(FrameName(report_, stacks_.inlined(), stacks_.exits(), frame)),
      functions_.size() + 1);
  if (new_name) put_text(InternedField::kFunctionNames, name->second, name->first);
  const auto [image, new_image] = mappings_.try_emplace(Printable(path), mappings_.size() + 1);
  if (new_image) {
    put_text(InternedField::kMappingPaths, image->second, image->first);
    Message<MappingField> mapping(interned, InternedField::kMappings);
    mapping.add_uint64(MappingField::kIid, image->second);
    mapping.add_uint64(MappingField::kPath, image->second);
  }
  Message<FrameField> put(interned, InternedField::kFrames);
  put.add_uint64(FrameField::kIid, at->second);
  put.add_uint64(FrameField::kFunction, name->second);
  put.add_uint64(FrameField::kMapping, image->second);
  put.add_uint64(FrameField::kPc, frame.address);
  return at->second;
}

uint64_t PerfettoWriter::StackNumber(const PlacedSample& placed) {
  uint32_t number = stacks_.Add(placed, resolver_);
  if (const auto context = LikelyContext(placed.places)) {
    number = stacks_.WithExit(number, *context);
  }
  if (stacks_put_.insert(number).second) {
    std::vector<uint64_t> frames;
    for (const StackFrame& frame : stacks_.at(number)) frames.push_back(FrameNumber(frame));
    std::ranges::reverse(frames);  // Perfetto has the outermost frame first
    Message<InternedField> interned(packets_.interned());
    Message<CallstackField> put(interned, InternedField::kCallstacks);
    put.add_uint64(CallstackField::kIid, uint64_t{number} + 1);
    for (const uint64_t frame : frames) put.add_uint64(CallstackField::kFrames, frame);
  }
  return uint64_t{number} + 1;
}

void PerfettoWriter::EndTrace() {
  for (uint32_t index = 0; index < vcpus_.size(); ++index) {
    if (vcpus_[index].known) PutBracket(index);
  }
  guest_marks_.Finish();
  for (uint32_t pcpu = 0; pcpu < scheduled_.size(); ++pcpu) {
    Scheduled& scheduled = scheduled_[pcpu];
    if (scheduled.run) PutSwitch(PcpuId{pcpu}, scheduled.run->end, std::nullopt);
  }
  sched_.Finish();
}

}  // namespace xenoscope::report
