#include "trace/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "trace/events.h"

namespace xenoscope::trace {
namespace {

// Exit reasons that only one vendor can give. Those of VMX end before 0x4e, except that bit 31
// marks a failed entry; SVM's at and above 0x4e are exceptions 14 up and all instructions.
constexpr uint32_t kFirstSvmOnly = 0x50;
constexpr uint32_t kLastSvmOnly = 0x410;

// Below 0x40 SVM counts accesses to control and debug registers; of these, those to registers that
// do not exist never come. All frequent reasons of VMX are among them: external interrupt, CPUID,
// HLT, CR access, I/O, RDMSR, TPR, APIC.
bool ImpossibleOnSvm(uint32_t reason) {
  const uint32_t number = reason & 0xf;
  if (reason < 0x20) return number == 1 || (number >= 5 && number != 8);
  return reason < 0x40 && number >= 8;
}

// No order of pages that Xen allocates reaches this (MAX_ORDER, xen/include/asm/config.h: 20).
constexpr uint32_t kMaxOrder = 32;

// Two thousand million cycles last less than 2^32 ns on any processor above 466 MHz.
constexpr uint64_t kLongestInterval = 2'000'000'000;
constexpr uint64_t kShortestRow = 10'000'000;  // nanoseconds
// The most by which the time from NOW to the record is expected to vary.
constexpr double kEndDelayNanoseconds = 2'000;

}  // namespace

std::optional<XenVersion> ParseXenVersion(std::string_view text) {
  uint32_t major = 0;
  uint32_t minor = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, minor);
  if (second.ec != std::errc() || major < 3 || major > 9 || minor > 98) return std::nullopt;
  if (second.ptr != end && *second.ptr != '.' && *second.ptr != '-') return std::nullopt;
  return MakeVersion(major, minor);
}

std::string_view ToString(DialectSource source) {
  switch (source) {
    case DialectSource::kInferred:
      return "inferred";
    case DialectSource::kRecorded:
      return "recorded";
    case DialectSource::kGiven:
      return "given";
    case DialectSource::kUnknown:
      break;
  }
  return "unknown";
}

Dialect Dialect::CompletedBy(const Dialect& other) const {
  Dialect all = *this;
  if (vendor_source == DialectSource::kUnknown) {
    all.vendor = other.vendor;
    all.vendor_source = other.vendor_source;
  }
  if (version_source == DialectSource::kUnknown) {
    all.from_version = other.from_version;
    all.before_version = other.before_version;
    all.version_source = other.version_source;
  }
  return all;
}

std::string VersionText(const Dialect& dialect) {
  const auto text = [](uint32_t version) {
    return fmt::format("{}.{}", version / 100, version % 100);
  };
  const bool from = dialect.from_version > kFirstVersion;
  const bool before = dialect.before_version < kAfterAllVersions;
  if (from && before) {
    const uint32_t last = dialect.before_version - 1U;
    return last == dialect.from_version ? text(last)
                                        : text(dialect.from_version) + " to " + text(last);
  }
  if (from) return text(dialect.from_version) + " or later";
  return before ? "before " + text(dialect.before_version) : "any";
}

void DialectEvidence::AtLeast(XenVersion version) { from_ = std::max(from_, version); }
void DialectEvidence::Before(XenVersion version) { before_ = std::min(before_, version); }

void DialectEvidence::ObserveExit(const Record& record) {
  const uint32_t reason = record.payload.Word(0);
  if (record.event == Event::kHvmSvmExit || IsNested(record.id)) {
    ++svm_;
    if (record.event == Event::kHvmSvmExit) AtLeast(419);
    return;
  }
  if (reason >= kFirstSvmOnly && reason <= kLastSvmOnly) {
    ++svm_;
    Before(419);  // since then SVM's exits are another event
  } else if (ImpossibleOnSvm(reason & 0x7fffffff)) {
    ++vmx_;
  }
}

// Takes two words of a memory record: domain and order since 4.18; before that, domain and
// order in one word, and padding.
void DialectEvidence::ObserveOrder(uint32_t first, uint32_t second) {
  if (first > 0xffff || second > kMaxOrder) {
    Before(418);
  } else if (second != 0) {  // what is not set is often 0, and an order of 0 reads the same in both
    ++plausible_orders_;
  }
}

void DialectEvidence::Observe(const Record& record) {
  const Payload& payload = record.payload;
  const uint32_t words = payload.count();
  switch (record.event) {
    case Event::kHvmVmexit:
    case Event::kHvmSvmExit:
      ObserveExit(record);
      break;
    case Event::kHvmIntr:
      // VMX knows the vector; SVM does not know it yet.
      ++(words == 0 ? svm_ : vmx_);
      break;
    case Event::kHvmSmi:
      ++svm_;
      break;
    case Event::kHvmCpuid:
      words == 5 ? Before(413) : AtLeast(413);
      break;
    case Event::kSchedSwitchInfprev:
      words == 2 ? Before(408) : AtLeast(408);
      break;
    case Event::kSchedSwitchInfcont:
      AtLeast(409);
      break;
    case Event::kCsched2CreditReset:
      words == 4 ? Before(411) : AtLeast(411);
      break;
    case Event::kCsched2CreditBurn:
    case Event::kCsched2TickleCheck:
      words == Info(record.event).min_words ? Before(410) : AtLeast(410);
      break;
    case Event::kCsched2RunqCandidate:
      if (words == 4) {
        AtLeast(409);
        Before(411);
      } else {  // before 4.9, or since 4.11
        short_candidate_ = true;
      }
      break;
    case Event::kRtdsBudgetBurn:
    case Event::kRtdsBudgetReplenish:
      words == Info(record.event).min_words ? Before(410) : AtLeast(409);
      break;
    case Event::kMemDecreaseReservation:
      ObserveOrder(payload.Word(2), payload.Word(3));
      break;
    case Event::kMemPodPopulate:
    case Event::kMemPodZeroReclaim:
      ObserveOrder(payload.Word(4), payload.Word(5));
      break;
    case Event::kShadowEmulateUnshadowUser:
    case Event::kShadowEmulateUnshadowEvtinj:
    case Event::kShadowEmulateUnshadowUnhandled:
      // As many words as the guest has levels, and since 4.19 the flags.
      words > ShadowLevels(record.id) ? AtLeast(419) : Before(419);
      break;
    case Event::kPvMathStateRestore:
      Before(422);
      break;
    default:
      break;
  }
}

Dialect DialectEvidence::Conclude() const {
  Dialect dialect;
  if (vmx_ != svm_ && (vmx_ == 0 || svm_ == 0)) {
    dialect.vendor = vmx_ != 0 ? Vendor::kVmx : Vendor::kSvm;
    dialect.vendor_source = DialectSource::kInferred;
  }
  XenVersion from = from_;
  XenVersion before = before_;
  if (short_candidate_ && before <= 411) before = std::min(before, XenVersion{409});
  if (short_candidate_ && from >= 409) from = std::max(from, XenVersion{411});
  // Words that always look like a small order are no padding.
  constexpr uint64_t kMinEvidence = 8;
  if (before > 418 && plausible_orders_ >= kMinEvidence) from = std::max(from, XenVersion{418});
  if (from < before && (from > kFirstVersion || before < kAfterAllVersions)) {
    dialect.from_version = from;
    dialect.before_version = before;
    dialect.version_source = DialectSource::kInferred;
  }
  return dialect;
}

ClockEvidence::Pcpu& ClockEvidence::At(PcpuId pcpu) {
  if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
  return pcpus_[pcpu.value];
}

void ClockEvidence::Observe(const Record& record) {
  const Payload& payload = record.payload;
  switch (record.event) {
    case Event::kSchedSwitchInfprev: {
      if (payload.count() != 3) return;  // before 4.8: without the vCPU
      Pcpu& pcpu = At(record.pcpu);
      const VcpuRef previous{DomainId{static_cast<uint16_t>(payload.Word(0))},
                             VcpuId{payload.Word(1)}};
      const Cycles cycles = record.tsc - pcpu.switched;
      const bool whole = pcpu.complete && pcpu.announced == previous && cycles < kLongestInterval;
      if (whole) {
        if (!pcpu.chained) ++chains_;
        ++intervals_;
        cycles_ += cycles;
        nanoseconds_ += payload.Word(2);
      }
      pcpu.chained = whole;
      pcpu.switched = record.tsc;
      pcpu.complete = false;
      return;
    }
    case Event::kSchedSwitchInfnext: {
      if (payload.count() != 4) return;
      Pcpu& pcpu = At(record.pcpu);
      pcpu.announced = {DomainId{static_cast<uint16_t>(payload.Word(0))}, VcpuId{payload.Word(1)}};
      pcpu.complete = true;
      return;
    }
    case Event::kLostRecords:
      At(record.pcpu).complete = false;
      return;
    default:
      return;
  }
}

std::optional<ClockEstimate> ClockEvidence::Conclude() const {
  if (nanoseconds_ < kShortestRow) return std::nullopt;
  const auto nanoseconds = static_cast<double>(nanoseconds_);
  return ClockEstimate{
      .hz = static_cast<uint64_t>(std::llround(static_cast<double>(cycles_) / nanoseconds * 1e9)),
      .relative_error = static_cast<double>(chains_) * kEndDelayNanoseconds / nanoseconds,
      .intervals = intervals_,
      .nanoseconds = nanoseconds_};
}

}  // namespace xenoscope::trace
