// The content of recording.json: who was recorded, with what, by which clock, and what was lost.
// docs/recording-format.md describes every key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"

namespace xenoscope::recording {

// A version of the format. A reader reads every minor version of its own major version: minor
// versions only add.
struct FormatVersion {
  uint32_t major = 1;
  uint32_t minor = 0;
  constexpr auto operator<=>(const FormatVersion&) const = default;
};
inline constexpr FormatVersion kFormat{1, 15};

// The state of a recording. kRecording in a recording that no process writes means that its writer
// was killed. kEndedEarly: an error ended it, or kept part of it from being written
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
  uint64_t clock_hz = 0;  // rate of the TSC in Hz, as Xen reports it; 0 when unknown
  uint32_t pcpus = 0;
  CpuVendor vendor = CpuVendor::kUnknown;
  std::string kernel;  // release of dom0's kernel, as uname -r prints it
  std::string name{};  // as uname -n prints it; empty: not known (before format 1.11)
  bool operator==(const HostInfo&) const = default;
};

// The time of day at RecordingInfo::started.
struct WallClock {
  uint64_t utc_ns = 0;    // since 1970
  uint64_t error_ns = 0;  // by how much it may be wrong: the kernel's bound (adjtimex(2))
  bool operator==(const WallClock&) const = default;
};

// dom0's weight in Xen's scheduler, raised while it recorded (record --boost).
struct BoostInfo {
  uint16_t before = 0;
  uint16_t raised = 0;
  bool operator==(const BoostInfo&) const = default;
};

struct DomainInfo {
  DomainId id;
  std::string name;
  DomainType type = DomainType::kUnknown;
  Role role = Role::kNone;
  uint32_t vcpus = 0;
  // Whether the domain ended during the recording; its samples up to there are kept.
  bool died = false;
  // Changes beyond the limit for each domain, which are not in RecordingInfo::changes.
  uint64_t changes_left_out = 0;
  bool operator==(const DomainInfo&) const = default;
};

// A change of a domain, or of one vCPU of it, during the recording.
struct DomainChange {
  enum class Kind : uint8_t {
    kUnknown,
    kCreated,
    kDestroyed,
    kPaused,  // paused by the toolstack
    kUnpaused,
    kSuspended,  // suspended to be saved or migrated; the domain is then destroyed or resumed
    kResumed,
    kPoweredOff,
    kRebooted,
    kCrashed,
    kVcpuOnline,
    kVcpuOffline,
  };
  Kind kind = Kind::kUnknown;
  DomainId domain;
  std::optional<VcpuId> vcpu;  // the vCPU that came or went
  TscRange when;               // half-open range of time between two polls, in cycles
  bool operator==(const DomainChange&) const = default;
};

// The accounting of the NMIs of a timer that stands in for the performance counters: `sent` is the
// sum of the other three.
struct NmiCounters {
  // NMIs that were due while the timer ran, on all pCPUs; or the NMIs that came, if those are more,
  // as with QEMU's HPET when its time is the number of instructions.
  uint64_t sent = 0;
  uint64_t logged = 0;  // NMIs that found a vCPU that is sampled
  uint64_t lost = 0;    // NMIs that found a sampled vCPU with a full buffer
  // NMIs that found an idle pCPU or a domain that is not sampled, or that came while the NMI before
  // was still being handled.
  uint64_t elsewhere = 0;
  bool operator==(const NmiCounters&) const = default;
};

// Limit of the events of a recording: an event's number in samples/*.samples is a byte.
inline constexpr size_t kMaxRecordingEvents = 256;

// An event that samples count. Sample::event is an index into RecordingInfo::events. Events are the
// same if their names, modes and sources are.
struct EventInfo {
  std::string name;
  uint32_t code = 0;
  uint32_t unit_mask = 0;
  uint64_t period = 0;  // counts between two samples; TSC cycles when a timer clocks the event
  // The clock: "pmu", or what stands in for it: the timer "hpet:500" or polls "vcpu:250", with the
  // rate in Hz.
  std::string clocked_by;
  bool waiting = false;  // whether samples are of vCPUs that waited for a pCPU, not of running ones
  std::optional<NmiCounters> nmis = std::nullopt;
  // The modes in which the event was counted. Xen's work for a vCPU is in `xen` also where it
  // appears at the place of the guest that it was done for. Not set: not known (before format 1.8).
  std::optional<ModeSet> modes = std::nullopt;
  // The name of the source that counted it (SourceInfo::name); empty: not known (before
  // format 1.8).
  std::string source{};
  bool operator==(const EventInfo&) const = default;
};

// The intervals between drains of a source's buffers (vcpu: between polls), in ns. Drained samples
// wait in memory until the disk takes them; when too many wait, drains wait too.
struct DrainInfo {
  uint64_t count = 0;
  uint64_t p50_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t most_ns = 0;
  uint64_t held_ns = 0;             // total time that drains waited for the disk
  uint64_t most_waiting_bytes = 0;  // most bytes that waited for the disk at one time
  bool operator==(const DrainInfo&) const = default;
};

// The pieces of user stacks that came with samples, for call chains by DWARF.
struct StackInfo {
  uint32_t piece_bytes = 0;   // limit of a piece, as requested
  uint64_t pieces = 0;        // pieces that were recorded
  uint64_t raw_bytes = 0;     // their size with registers, before compression
  uint64_t stored_bytes = 0;  // their size in the file
  uint64_t left_out = 0;      // pieces that were left out, because more came than may be written
  bool operator==(const StackInfo&) const = default;
};

// SourceInfo::cpu_type begins with this where Xen's vPMU counts for Linux's perf; its mode follows.
inline constexpr std::string_view kVpmu = "vpmu:";
inline constexpr std::string_view kVpmuAll = "vpmu:all";

// A source of samples; its file is samples/NAME.samples.
struct SourceInfo {
  std::string name;      // "xenoprof"
  std::string cpu_type;  // name of the PMU as the source has it: "x86-64/family15h"
  // Interval that was asked for, or the mean interval between polls.
  uint64_t drain_interval_ns = 0;
  uint64_t seed = 0;   // seed of the random instants; 0: there are none
  DrainInfo drains{};  // the drains as they were; of an agent: its messages of samples
  // Problems of the source, one sentence each, that say why samples are missing.
  std::vector<std::string> problems{};
  // Set where samples have pieces of stacks (since format 1.11).
  std::optional<StackInfo> stacks = std::nullopt;
  bool operator==(const SourceInfo&) const = default;
};

// The trace of a recording.
struct TraceInfo {
  std::string events;  // the events that were asked for: a preset, a class, a number, or a list
  // The mask that Xen had (trace/event_mask.h). Not set: not known (before format 1.10).
  std::optional<uint32_t> event_mask;
  // Pages that Xen has for each pCPU; before format 1.7: pages asked for.
  uint32_t buffer_pages = 0;
  uint32_t asked_pages = 0;   // pages for each pCPU that Xen was asked for
  uint64_t lost_records = 0;  // records that found their pCPU's buffer full
  Cycles lost_cycles = 0;     // sum over pCPUs of the time in which records were lost
  bool operator==(const TraceInfo&) const = default;
};

// Xen's own counters of one sample buffer (xen/include/public/xenoprof.h, struct xenoprof_buf).
struct BufferCounters {
  uint64_t xen = 0;
  uint64_t kernel = 0;
  uint64_t user = 0;
  uint64_t lost = 0;
  bool operator==(const BufferCounters&) const = default;
  [[nodiscard]] constexpr uint64_t Logged() const { return xen + kernel + user; }
};

// The result and cost of polling one vCPU: total = blocked + running + preempted + failed.
struct PollCounters {
  uint64_t total = 0;
  uint64_t blocked = 0;       // polls that found it blocked or offline, and did not stop it
  uint64_t running = 0;       // polls that stopped and read a running vCPU
  uint64_t preempted = 0;     // polls that stopped and read a vCPU that waited for a pCPU
  uint64_t failed = 0;        // polls that Xen refused
  Cycles stopped_cycles = 0;  // upper bound of the sum of all stops
  Cycles longest_stop = 0;
  uint64_t callers = 0;     // callers that were found on stacks
  uint64_t cut_chains = 0;  // call chains that do not end in an outermost frame
  bool gone = false;        // whether the vCPU went away while it was polled
  bool operator==(const PollCounters&) const = default;
};

// What the kernel reported about one of its rings of samples.
struct RingCounters {
  uint64_t throttled = 0;    // times that the kernel held sampling back, as it was too frequent
  uint64_t unthrottled = 0;  // times that sampling went on after that
  uint64_t damaged = 0;      // bytes that are not records
  bool operator==(const RingCounters&) const = default;
};

// The accounting of one vCPU's buffer: every entry that it took in.
struct StreamInfo {
  std::string source;
  VcpuRef vcpu;
  BufferCounters logged;        // Xen's counters, from before the start to after the stop
  uint64_t drained = 0;         // entries taken out of the buffer: the sum of the six fields below
  uint64_t kept = 0;            // entries written as samples
  uint64_t other_counters = 0;  // entries of counters that no event was asked for on
  uint64_t other_modes = 0;     // entries of modes that were not asked for
  uint64_t escapes = 0;         // marks at the start of call chains
  uint64_t callers = 0;         // entries of call chains, which are not samples
  uint64_t invalid = 0;         // entries with a mode or counter that does not exist
  bool complete = false;        // whether `logged` was read after the stop
  std::optional<PollCounters> polls;
  std::optional<RingCounters> ring;
  bool operator==(const StreamInfo&) const = default;

  // Checks the identity that every complete stream keeps; Xen counts samples only. While recording,
  // entries may be drained and not yet accounted for.
  [[nodiscard]] constexpr bool Balanced() const {
    const uint64_t accounted = kept + other_counters + other_modes + escapes + callers + invalid;
    if (!complete) return accounted <= drained;
    return drained == accounted && drained == logged.Logged() + escapes + callers;
  }
};

// The accounting of the kernel's trace buffer of one CPU, by the kernel's own counts.
struct KernelTraceInfo {
  std::string source;  // the source whose file has the pages
  VcpuRef vcpu;
  uint64_t read = 0;  // events that were read out of the buffer
  uint64_t lost = 0;  // events that found the buffer full
  bool operator==(const KernelTraceInfo&) const = default;
};

// A file of the recording that maps addresses to names.
struct SymbolFile {
  enum class Kind : uint8_t {
    kXensyms,      // /proc/xen/xensyms
    kKallsyms,     // /proc/kallsyms, or a System.map, of `domain`'s kernel
    kModules,      // /proc/modules of `domain`
    kVmlinux,      // ELF file of `domain`'s kernel
    kImage,        // ELF file that runs in `domain`'s user mode
    kVdso,         // the vDSO that `domain`'s kernel gives its processes, an ELF file
    kPerfMaps,     // functions that JIT compilers wrote down, of `domain`'s processes
    kLivepatches,  // Xen's console output about its livepatches
    // What `domain`'s kernel recorded of its boot (docs/boot.md): no symbols, but kept as they are.
    kBootTrace,
  };
  Kind kind = Kind::kXensyms;
  DomainId domain;       // the domain; kXensyms and kLivepatches ignore it
  std::string path;      // path in the recording: "symbols/dom0.kallsyms"
  std::string original;  // path that it was copied from
  bool operator==(const SymbolFile&) const = default;
};

struct RecordingInfo {
  FormatVersion format = kFormat;
  std::string written_by;  // "xenoscope 0.1.0"
  State state = State::kRecording;
  std::vector<std::string> command;  // command that ran during the recording; empty: none
  std::string stopped_because;  // "command ended", "SIGINT", or an error; empty while recording
  XenInfo xen;
  HostInfo host;
  // The range of sampling (without samples: of tracing), [started, stopped). 0: not known, or not
  // yet.
  Tsc started;
  Tsc stopped;
  std::optional<WallClock> wall_clock;  // not set: not known (before format 1.11)
  std::optional<BoostInfo> boost;       // not set: not raised, or not known (before format 1.13)
  std::vector<DomainInfo> domains;
  // The changes in the order of time. Since format 1.7 they are in a file of their own
  // (recording/changes.h), before that in recording.json.
  std::vector<DomainChange> changes;
  std::vector<SourceInfo> sources;
  std::vector<EventInfo> events;
  std::vector<StreamInfo> streams;
  std::vector<KernelTraceInfo> kernel_traces;
  std::optional<TraceInfo> trace;
  std::vector<SymbolFile> symbols;
  uint64_t own_cpu_ns = 0;  // processor time that recording took in ns, xentrace's included
  bool operator==(const RecordingInfo&) const = default;

  // Returns the domain, or nullptr.
  [[nodiscard]] const DomainInfo* Domain(DomainId id) const;
  // Returns the first file of this kind for the domain, or nullptr.
  [[nodiscard]] const SymbolFile* Symbols(SymbolFile::Kind kind, DomainId domain) const;
  // Returns the domain's name; empty when it has none or is not known.
  [[nodiscard]] std::string NameOf(DomainId id) const;
};

}  // namespace xenoscope::recording
