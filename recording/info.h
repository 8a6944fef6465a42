// What recording.json says: who was recorded, with what, by which clock, and what was lost.
// docs/recording-format.md describes every key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"

namespace xenoscope::recording {

// A reader reads every minor version of its own major version: minor ones only add.
struct FormatVersion {
  uint32_t major = 1;
  uint32_t minor = 0;
  constexpr auto operator<=>(const FormatVersion&) const = default;
};
inline constexpr FormatVersion kFormat{1, 7};

// kRecording in a recording that is not being written any more: its writer was killed. kEndedEarly:
// an error has ended it, or has kept some of it from being written
// (RecordingInfo::stopped_because).
enum class State : uint8_t { kRecording, kComplete, kEndedEarly };
enum class DomainType : uint8_t { kUnknown, kPv, kPvh, kHvm };
enum class Role : uint8_t { kNone, kInitiator, kActive, kPassive };
enum class CpuVendor : uint8_t { kUnknown, kIntel, kAmd };

struct XenInfo {
  std::string version;       // "4.17.7"; empty when unknown
  std::string build_id;      // hexadecimal; empty when unknown
  std::string command_line;  // Xen's boot options
  bool operator==(const XenInfo&) const = default;
};

struct HostInfo {
  uint64_t clock_hz = 0;  // of the TSC, as Xen reports it; 0 when unknown
  uint32_t pcpus = 0;
  CpuVendor vendor = CpuVendor::kUnknown;
  std::string kernel;  // dom0's, as uname -r
  bool operator==(const HostInfo&) const = default;
};

struct DomainInfo {
  DomainId id;
  std::string name;
  DomainType type = DomainType::kUnknown;
  Role role = Role::kNone;
  uint32_t vcpus = 0;
  bool died = false;              // while it was recorded; its samples up to there are kept
  uint64_t changes_left_out = 0;  // of RecordingInfo::changes, beyond a limit for each domain
  bool operator==(const DomainInfo&) const = default;
};

// What happened to a domain, or a vCPU of it, while it was recorded.
struct DomainChange {
  enum class Kind : uint8_t {
    kUnknown,
    kCreated,
    kDestroyed,
    kPaused,  // by the tools
    kUnpaused,
    kSuspended,  // to be saved, or migrated away: it is destroyed then, or resumed
    kResumed,
    kPoweredOff,
    kRebooted,
    kCrashed,
    kVcpuOnline,
    kVcpuOffline,
  };
  Kind kind = Kind::kUnknown;
  DomainId domain;
  std::optional<VcpuId> vcpu;  // that came or went
  TscRange when;               // between two polls
  bool operator==(const DomainChange&) const = default;
};

// What became of the NMIs of a timer that stood in for the performance counters: `sent` is the sum
// of the other three.
struct NmiCounters {
  // That were due while it ran, on all pCPUs; or that came, where that is more, as it is with
  // QEMU's HPET when its time is the number of instructions.
  uint64_t sent = 0;
  uint64_t logged = 0;  // found a vCPU that is sampled
  uint64_t lost = 0;    // did so too, and its buffer full
  // Found an idle pCPU or a domain that is not sampled, or came while the one before was being
  // handled.
  uint64_t elsewhere = 0;
  bool operator==(const NmiCounters&) const = default;
};

// How many events a recording can have: their numbers in samples/*.samples are bytes.
inline constexpr size_t kMaxRecordingEvents = 256;

// What a sample counts. Sample::event is an index into RecordingInfo::events.
struct EventInfo {
  std::string name;
  uint32_t code = 0;
  uint32_t unit_mask = 0;
  uint64_t period = 0;  // counts between two samples; cycles of the TSC when clocked by a timer
  // "pmu", or what stood in for it: the timer "hpet:500", polls "vcpu:250", a second
  std::string clocked_by;
  bool waiting = false;  // of vCPUs that waited for a pCPU, not of running ones
  std::optional<NmiCounters> nmis = std::nullopt;
  bool operator==(const EventInfo&) const = default;
};

// How long it was from one drain of a source's buffers to the next (of vcpu: one poll), in ns. What
// drains found waits in memory until the disk takes it, and when too much waits, drains do.
struct DrainInfo {
  uint64_t count = 0;
  uint64_t p50_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t most_ns = 0;
  uint64_t held_ns = 0;             // in all, drains waited for the disk
  uint64_t most_waiting_bytes = 0;  // at one time, for the disk
  bool operator==(const DrainInfo&) const = default;
};

// One way samples were taken; its file is samples/NAME.samples.
struct SourceInfo {
  std::string name;                // "xenoprof"
  std::string cpu_type;            // as the source calls the PMU: "x86-64/family15h"
  uint64_t drain_interval_ns = 0;  // as asked for, or from poll to poll, on the average
  uint64_t seed = 0;               // of the random instants; 0: there are none
  DrainInfo drains{};              // as they were; of agents: of what they sent
  // What went wrong with it, a sentence each, for the user: why samples are missing.
  std::vector<std::string> problems{};
  bool operator==(const SourceInfo&) const = default;
};

struct TraceInfo {
  std::string events;         // as given to xentrace -e
  uint32_t buffer_pages = 0;  // that Xen has for each pCPU; before 1.7: asked for
  uint32_t asked_pages = 0;   // likewise, that it was asked for
  uint64_t lost_records = 0;  // that found their pCPU's buffer full
  Cycles lost_cycles = 0;     // of pCPUs, in which records were lost
  bool operator==(const TraceInfo&) const = default;
};

// Xen's own counters of one sample buffer (xen/include/public/xenoprof.h, struct xenoprof_buf).
struct BufferCounters {
  uint64_t xen = 0;
  uint64_t kernel = 0;
  uint64_t user = 0;
  uint64_t lost = 0;
  bool operator==(const BufferCounters&) const = default;
  constexpr uint64_t Logged() const { return xen + kernel + user; }
};

// What polling one vCPU found, and what it cost: total = blocked + running + preempted + failed.
struct PollCounters {
  uint64_t total = 0;
  uint64_t blocked = 0;       // or offline: left alone
  uint64_t running = 0;       // stopped and read
  uint64_t preempted = 0;     // waiting for a pCPU: stopped and read
  uint64_t failed = 0;        // Xen refused
  Cycles stopped_cycles = 0;  // at most, all stops together
  Cycles longest_stop = 0;
  uint64_t callers = 0;     // that were found on the stacks
  uint64_t cut_chains = 0;  // that did not end in an outermost frame
  bool gone = false;        // while it was polled
  bool operator==(const PollCounters&) const = default;
};

// What the kernel said of one of its rings of samples, beside the samples.
struct RingCounters {
  uint64_t throttled = 0;    // times that sampling was held back, being too frequent
  uint64_t unthrottled = 0;  // and went on
  uint64_t damaged = 0;      // bytes that are no records
  bool operator==(const RingCounters&) const = default;
};

// What became of every entry that one vCPU's buffer took in.
struct StreamInfo {
  std::string source;
  VcpuRef vcpu;
  BufferCounters logged;        // by Xen, from before the start to after the stop
  uint64_t drained = 0;         // entries taken out: kept + the three below
  uint64_t kept = 0;            // written as samples
  uint64_t other_counters = 0;  // of counters that no event was asked for on
  uint64_t other_modes = 0;     // of modes that were not asked for
  uint64_t escapes = 0;         // call chain marks
  uint64_t callers = 0;         // entries of call chains, that are no samples of their own
  uint64_t invalid = 0;         // a mode or counter that does not exist
  bool complete = false;        // `logged` was read after the stop
  std::optional<PollCounters> polls;
  std::optional<RingCounters> ring;
  bool operator==(const StreamInfo&) const = default;

  // The identity every complete stream keeps; Xen counts samples only. While recording, entries may
  // be drained and not yet accounted for.
  constexpr bool Balanced() const {
    const uint64_t accounted = kept + other_counters + other_modes + escapes + callers + invalid;
    if (!complete) return accounted <= drained;
    return drained == accounted && drained == logged.Logged() + escapes + callers;
  }
};

// A file of the recording from which addresses become names.
struct SymbolFile {
  enum class Kind : uint8_t {
    kXensyms,      // /proc/xen/xensyms
    kKallsyms,     // /proc/kallsyms, or a System.map, of `domain`'s kernel
    kModules,      // /proc/modules of `domain`
    kVmlinux,      // ELF file of `domain`'s kernel
    kImage,        // ELF file that runs in `domain`'s user mode
    kVdso,         // what `domain`'s kernel gives its processes, an ELF file
    kPerfMaps,     // what compilers at run time told of `domain`'s processes
    kLivepatches,  // what Xen's console told of its livepatches
  };
  Kind kind = Kind::kXensyms;
  DomainId domain;       // no meaning for kXensyms, kLivepatches
  std::string path;      // in the recording: "symbols/dom0.kallsyms"
  std::string original;  // where it was copied from
  bool operator==(const SymbolFile&) const = default;
};

struct RecordingInfo {
  FormatVersion format = kFormat;
  std::string written_by;  // "xenoscope 0.1.0"
  State state = State::kRecording;
  std::vector<std::string> command;  // that ran while recording; empty when none
  std::string stopped_because;       // "command ended", "SIGINT", an error; empty while recording
  XenInfo xen;
  HostInfo host;
  // Sampling (without samples: tracing) went on in [started, stopped). 0 when not known (yet).
  Tsc started;
  Tsc stopped;
  std::vector<DomainInfo> domains;
  // In the order of time. In a file of its own since 1.7 (recording/changes.h), before that in
  // recording.json.
  std::vector<DomainChange> changes;
  std::vector<SourceInfo> sources;
  std::vector<EventInfo> events;
  std::vector<StreamInfo> streams;
  std::optional<TraceInfo> trace;
  std::vector<SymbolFile> symbols;
  uint64_t own_cpu_ns = 0;  // processor time that recording took, with xentrace's
  bool operator==(const RecordingInfo&) const = default;

  // The domain, or nullptr.
  const DomainInfo* Domain(DomainId id) const;
  // Its name; empty when it has none, or is not known.
  std::string NameOf(DomainId id) const;
};

}  // namespace xenoscope::recording
