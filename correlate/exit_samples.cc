#include "correlate/exit_samples.h"

#include <algorithm>
#include <tuple>

#include "correlate/nmi_matching.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;
using trace::Event;
using trace::Record;

constexpr DomainId kDomInvalid{0x7ff4};  // DOMID_INVALID of xen/include/public/xen.h
// The cycles of the trace that are read at once, some milliseconds.
constexpr Cycles kReadAtOnce = Cycles{1} << 24;

Sample SampleOf(const Record& exit, const VcpuTrack* running) {
  Sample sample;
  sample.vcpu = running == nullptr ? VcpuRef{kDomInvalid, VcpuId{0}} : running->ref;
  sample.address = trace::Is64(exit.id) ? exit.payload.Word64(1) : exit.payload.Word(1);
  sample.mode = ModeOfGuestCode(sample.address);
  sample.when = {Tsc{exit.tsc.value - 1}, exit.tsc};
  sample.pcpu = exit.pcpu;
  return sample;
}

}  // namespace

bool ExitSamples::Handles(Event event) {
  return event == Event::kHvmVmexit || event == Event::kHvmSvmExit || event == Event::kHvmNmi;
}

void ExitSamples::Take(const Record& record, const VcpuTrack* running) {
  if (record.event == Event::kHvmNmi) {
    TakeNmi(record);
  } else {
    TakeExit(record, running);
  }
}

void ExitSamples::TakeExit(const Record& record, const VcpuTrack* running) {
  maybe_nmi_.reset();
  if (trace::IsNested(record.id)) return;  // the address is of the nested guest's own guest
  const trace::Vendor vendor = record.event == Event::kHvmSvmExit ? trace::Vendor::kSvm : vendor_;
  const uint32_t reason = record.payload.Word(0);
  const bool nmi = reason == NmiExitReason(vendor);  // on VMX also that of exceptions
  if (IsHostInterrupt(vendor, reason) || (nmi && vendor == trace::Vendor::kSvm)) {
    Add(SampleOf(record, running));
  } else if (nmi) {
    maybe_nmi_ = SampleOf(record, running);
  }
}

void ExitSamples::TakeNmi(const Record& record) {
  if (!maybe_nmi_ || maybe_nmi_->pcpu != record.pcpu) return;
  Add(*maybe_nmi_);
  maybe_nmi_.reset();
}

void ExitSamples::Add(const Sample& sample) {
  samples_.push_back(sample);
  ++left_;
  // What a later record says of the vCPU that ran does not count: it was not known.
  if (sample.vcpu.domain == kDomInvalid) samples_.back().pcpu.reset();
  sorted_ = false;
}

const Sample* ExitSamples::Next() {
  if (left_ == 0) {
    samples_.clear();
    given_ = 0;
    return nullptr;
  }
  if (!sorted_) {
    std::stable_sort(samples_.begin() + static_cast<std::ptrdiff_t>(given_), samples_.end(),
                     [](const Sample& a, const Sample& b) {
                       return std::tie(a.when.end, a.pcpu) < std::tie(b.when.end, b.pcpu);
                     });
    sorted_ = true;
  }
  --left_;
  return &samples_[given_++];
}

ExitSampleReader::ExitSampleReader(const trace::TraceFile& trace, trace::Vendor vendor)
    : samples_(vendor), stream_(trace.Stream()), timeline_(null_observer_) {
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    if (timeline_.Handles(event) || ExitSamples::Handles(event)) events_[i] = &trace::kAnyTarget;
  }
}

const Sample* ExitSampleReader::Next() {
  for (;;) {
    if (const Sample* sample = samples_.Next()) return sample;
    const Tsc next = stream_.next_tsc();
    if (next == trace::OrderedStream::kEnd) return nullptr;
    stream_.ForEach<false, trace::RecordOrder::kTime>(next + kReadAtOnce, events_, *this);
  }
}

void ExitSampleReader::TakeRecord(const Record& record, const trace::AnyTarget& /*target*/) {
  if (ExitSamples::Handles(record.event)) {
    samples_.Take(record, timeline_.Current(record.pcpu));
  }
  timeline_.TakeRecord(record);
}

}  // namespace xenoscope::correlate
