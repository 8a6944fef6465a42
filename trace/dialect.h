// Finds which Xen wrote a trace, on which processor, at what frequency: given, recorded, or
// inferred from the records. The file has no header that says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "trace/names.h"
#include "trace/record.h"

namespace xenoscope::trace {

// A version of Xen as one number in the order of time: 4.8 is 408, 4.18 is 418.
using XenVersion = uint16_t;
inline constexpr XenVersion kFirstVersion = 300;
inline constexpr XenVersion kAfterAllVersions = 999;

constexpr XenVersion MakeVersion(uint32_t major, uint32_t minor) {
  return static_cast<XenVersion>(major * 100 + minor);
}
// Returns 417 for "4.17" or "4.17.7-pre"; nothing for anything else.
[[nodiscard]] std::optional<XenVersion> ParseXenVersion(std::string_view text);

enum class DialectSource : uint8_t {
  kUnknown,
  kInferred,  // from the records
  kRecorded,  // the recording says it
  kGiven,     // the user said it
};

// "unknown", "inferred", "recorded", "given".
[[nodiscard]] std::string_view ToString(DialectSource source);

struct Dialect {
  Vendor vendor = Vendor::kUnknown;
  DialectSource vendor_source = DialectSource::kUnknown;
  // Xen's version is one of [from_version, before_version).
  XenVersion from_version = kFirstVersion;
  XenVersion before_version = kAfterAllVersions;
  DialectSource version_source = DialectSource::kUnknown;

  void SetVersion(XenVersion version, DialectSource source) {
    from_version = version;
    before_version = static_cast<XenVersion>(version + 1);
    version_source = source;
  }
  // Returns this dialect, with `other`'s parts where this one's are unknown.
  [[nodiscard]] Dialect CompletedBy(const Dialect& other) const;
};

// "4.17", "4.11 to 4.17", "4.19 or later", "before 4.18", "any".
[[nodiscard]] std::string VersionText(const Dialect& dialect);

// Collects what records say of the dialect.
class DialectEvidence {
 public:
  void Observe(const Record& record);
  // Returns the dialect as far as the records say it. A part stays unknown where they contradict
  // each other.
  [[nodiscard]] Dialect Conclude() const;

 private:
  void ObserveExit(const Record& record);
  void ObserveOrder(uint32_t first, uint32_t second);
  void AtLeast(XenVersion version);
  void Before(XenVersion version);

  XenVersion from_ = kFirstVersion;
  XenVersion before_ = kAfterAllVersions;
  uint64_t vmx_ = 0;
  uint64_t svm_ = 0;
  bool short_candidate_ = false;   // a runq_candidate of three words was seen
  uint64_t plausible_orders_ = 0;  // memory records that read well as those of 4.18 and later
};

struct ClockEstimate {
  uint64_t hz = 0;
  double relative_error = 0;  // the most that varying delays at the ends of the rows can cause
  uint64_t intervals = 0;     // the number of intervals that the estimate uses
  uint64_t nanoseconds = 0;   // the sum of their lengths
};

// Estimates the TSC's frequency from records that state nanoseconds.
//
// When Xen's scheduler switches from one vCPU to another it reads its clock (NOW) once and accounts
// from this one reading: the runtime in switch_infprev is the time from the reading at which that
// vCPU came on to the present one (xen/common/sched/core.c, sched_switch_units, 4.17; the same
// in 4.8 to 4.22). From one switch of a pCPU to its next the nanoseconds are therefore exact, and
// over a row of switches without a gap they add up. The TSCs to compare with them are those of the
// two switch_infprev records. Both are written at the same place in the scheduler, and are late by
// the time from NOW to the record, which varies little; of a row, only the first and the last of
// these delays matter. Runstate records come later, by a less constant delay. Two kinds of
// intervals are not used: those whose vCPU is not the one that the switch before announced (a
// record was lost), and those so long that the 32 bits of the runtime can have wrapped.
class ClockEvidence {
 public:
  void Observe(const Record& record);
  // Notes that records of this pCPU are missing here.
  void Break(PcpuId pcpu) { At(pcpu).complete = false; }
  [[nodiscard]] std::optional<ClockEstimate> Conclude() const;
  // Whether more records hardly make the estimate better: a second and a thousand intervals.
  [[nodiscard]] bool Enough() const { return nanoseconds_ >= 1'000'000'000 && intervals_ >= 1'000; }

 private:
  struct Pcpu {
    VcpuRef announced;      // the vCPU that the last switch brought on
    Tsc switched;           // the time of that switch, by its switch_infprev
    bool complete = false;  // both are known, and nothing was lost since
    bool chained = false;   // the interval before ended where this one begins
  };
  Pcpu& At(PcpuId pcpu);

  std::vector<Pcpu> pcpus_;
  uint64_t intervals_ = 0;
  uint64_t chains_ = 0;
  uint64_t cycles_ = 0;
  uint64_t nanoseconds_ = 0;
};

}  // namespace xenoscope::trace
