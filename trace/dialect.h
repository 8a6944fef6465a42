// Which Xen wrote a trace, on which processor, at what frequency: given, recorded, or found from
// what the records themselves show. The file has no header that says it.
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
// "4.17" or "4.17.7-pre" as 417; nothing for anything else.
std::optional<XenVersion> ParseXenVersion(std::string_view text);

enum class DialectSource : uint8_t {
  kUnknown,
  kInferred,  // from the records
  kRecorded,  // the recording says it
  kGiven,     // the user said it
};

// "unknown", "inferred", "recorded", "given".
std::string_view ToString(DialectSource source);

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
  // With what is unknown here taken from `other`.
  Dialect CompletedBy(const Dialect& other) const;
};

// "4.17", "4.11 to 4.17", "4.19 or later", "before 4.18", "any".
std::string VersionText(const Dialect& dialect);

// What the records seen so far say of the dialect.
class DialectEvidence {
 public:
  void Observe(const Record& record);
  // Where the evidence contradicts itself, that part stays unknown.
  Dialect Conclude() const;
  // Whether more records can hardly change the conclusion.
  bool Enough() const;

 private:
  void ObserveExit(const Record& record);
  void ObserveOrder(uint32_t first, uint32_t second);
  void AtLeast(XenVersion version);
  void Before(XenVersion version);

  XenVersion from_ = kFirstVersion;
  XenVersion before_ = kAfterAllVersions;
  uint64_t vmx_ = 0;
  uint64_t svm_ = 0;
  uint64_t records_ = 0;
  bool short_candidate_ = false;   // a runq_candidate of three words was seen
  uint64_t plausible_orders_ = 0;  // memory records that read well as those of 4.18 and later
};

struct ClockEstimate {
  uint64_t hz = 0;
  double relative_error = 0;  // what varying delays at the ends of the rows can amount to
  uint64_t intervals = 0;     // that the estimate rests on
  uint64_t nanoseconds = 0;   // that they sum to
};

// The TSC's frequency, from records that state nanoseconds.
//
// When Xen's scheduler switches from one vCPU to another it reads its clock (NOW) once and accounts
// from this one reading: the runtime in switch_infprev is the time from the reading at which that
// vCPU came on to the present one (xen/common/sched/core.c, sched_switch_units, 4.17; likewise in
// 4.8 to 4.22). From one switch of a pCPU to its next the nanoseconds are therefore exact, and over
// a row of switches without a gap they add up. The TSCs to hold against them are those of the two
// switch_infprev records: the same place in the scheduler, both equally late but for how the way
// from NOW to the record varies, and in a row only the first and the last of these delays remain.
// Runstate records come later, by a less constant delay. Not used: an interval whose vCPU is not
// the one that the switch before announced (a record was lost), and one so long that the 32 bits of
// the runtime could have wrapped.
class ClockEvidence {
 public:
  void Observe(const Record& record);
  // Records of this pCPU are missing here.
  void Break(PcpuId pcpu) { At(pcpu).complete = false; }
  std::optional<ClockEstimate> Conclude() const;
  // Whether the estimate is as good as it is going to be: a second and a thousand intervals.
  bool Enough() const { return nanoseconds_ >= 1'000'000'000 && intervals_ >= 1'000; }

 private:
  struct Pcpu {
    VcpuRef announced;      // the vCPU that the last switch brought on
    Tsc switched;           // when, by its switch_infprev
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
