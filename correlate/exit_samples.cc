#include "correlate/exit_samples.h"

#include "correlate/nmi_matching.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;
using trace::Event;
using trace::Item;
using trace::ItemKind;
using trace::Record;

// Intel SDM 3, appendix C.
constexpr DomainId kDomInvalid{0x7ff4};  // DOMID_INVALID of xen/include/public/xen.h

}  // namespace

ExitSamples::ExitSamples(const trace::TraceFile& trace, trace::Vendor vendor)
    : vendor_(vendor), stream_(trace.Stream()), timeline_(null_observer_) {}

const Sample* ExitSamples::Next() {
  is_ready_ = false;
  while (!is_ready_) {
    const Item* item = stream_.Next();
    if (item == nullptr) return nullptr;
    Take(*item);
  }
  return &ready_;
}

void ExitSamples::Take(const Item& item) {
  timeline_.Take(item);
  if (item.kind != ItemKind::kRecord) return;
  if (!begun_) traced_.begin = item.record.tsc;
  begun_ = true;
  traced_.end = item.record.tsc;
  switch (item.record.event) {
    case Event::kHvmVmexit:
    case Event::kHvmSvmExit:
      return TakeExit(item.record);
    case Event::kHvmNmi:
      return TakeNmi(item.record);
    default:
      return;
  }
}

void ExitSamples::TakeExit(const Record& record) {
  maybe_nmi_.reset();
  if (trace::IsNested(record.id)) return;  // the address is of the nested guest's own guest
  const trace::Vendor vendor = record.event == Event::kHvmSvmExit ? trace::Vendor::kSvm : vendor_;
  const uint32_t reason = record.payload.Word(0);
  const bool nmi = reason == NmiExitReason(vendor);  // on VMX also that of exceptions
  if (IsHostInterrupt(vendor, reason) || (nmi && vendor == trace::Vendor::kSvm)) {
    ready_ = SampleOf(record);
    is_ready_ = true;
  } else if (nmi) {
    maybe_nmi_ = SampleOf(record);
  }
}

void ExitSamples::TakeNmi(const Record& record) {
  if (!maybe_nmi_ || maybe_nmi_->pcpu != record.pcpu) return;
  ready_ = *maybe_nmi_;
  is_ready_ = true;
  maybe_nmi_.reset();
}

Sample ExitSamples::SampleOf(const Record& exit) const {
  Sample sample;
  const VcpuTrack* track = timeline_.Current(exit.pcpu);
  sample.vcpu = track == nullptr ? VcpuRef{kDomInvalid, VcpuId{0}} : track->ref;
  sample.address = trace::Is64(exit.id) ? exit.payload.Word64(1) : exit.payload.Word(1);
  sample.mode = ModeOfGuestCode(sample.address);
  sample.when = {Tsc{exit.tsc.value - 1}, exit.tsc};
  sample.pcpu = exit.pcpu;
  return sample;
}

}  // namespace xenoscope::correlate
