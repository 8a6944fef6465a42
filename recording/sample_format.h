// The bytes of samples/NAME.samples: one FileHeader, then chunks, each a ChunkHeader and its
// entries. docs/recording-format.md describes the same in words. All is little-endian, without
// padding.
#pragma once

#include <array>
#include <cstdint>

namespace xenoscope::recording {

inline constexpr std::array<char, 8> kSampleMagic{'X', 'E', 'N', 'O', 'S', 'M', 'P', 'L'};
inline constexpr uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"

struct FileHeader {
  std::array<char, 8> magic = kSampleMagic;
  uint16_t major = 1;
  uint16_t minor = 15;
  uint32_t header_size = sizeof(kSampleMagic) + 8;  // chunks begin here
};
static_assert(sizeof(FileHeader) == 16);

// The kind of a chunk's entries. A reader passes over kinds that it does not know, and counts them.
enum class ChunkKind : uint16_t {
  kBracketed = 1,           // samples drained from a buffer
  kStopped = 2,             // samples of vCPUs stopped between `previous_before` and `after`
  kTimed = 3,               // samples with a vCPU, time, thread and call chain each: TimedEntry
  kProcesses = 4,           // processes and what they map, not samples: ProcessEntry
  kStoppedWithCallers = 5,  // samples as kStopped, in the form of kTimed
  kTracePages = 6,    // pages of one CPU's trace buffer in the domain's kernel (guests/ftrace)
  kTraceFormats = 7,  // text that says how these pages and their events are laid out
  kStacks = 8,        // registers and pieces of stacks of samples, compressed: StackEntry
  kClockAnswers = 9,  // what the TSC of the domain was, between two of the host's: ClockAnswer
  kCpuTimes = 10,     // what the domain's kernel says that its CPUs did: CpuTimesEntry
  // Text that JIT compilers of the domain have written since the chunk before, as in a recording's
  // perf-maps. Agents send it; recordings have it in that file.
  kPerfMaps = 11,
};

// The header of a chunk: the entries of one drain of one vCPU's buffer, or of one poll of a vCPU.
struct ChunkHeader {
  uint32_t magic = kChunkMagic;
  ChunkKind kind = ChunkKind::kBracketed;
  uint16_t domain = 0;
  uint32_t vcpu = 0;
  uint32_t count = 0;  // number of entries
  // Size of an entry in bytes; a newer minor version may append to an entry.
  uint32_t entry_size = 0;
  uint32_t entries_crc = 0;      // CRC-32 (ISO 3309, as zlib's) of the entries
  uint64_t previous_before = 0;  // TSC read before the drain before this one
  uint64_t before = 0;           // TSC read before this drain looked into the buffer
  uint64_t after = 0;            // TSC read after this drain looked into the buffer
  // Number of items (HoldsItems); size in bytes when decompressed, for kStacks; else 0.
  uint32_t items = 0;
  uint32_t header_crc = 0;  // CRC-32 of the bytes of this header before this field
};
static_assert(sizeof(ChunkHeader) == 56);

// Returns whether entries are the words of items, each of its own size.
constexpr bool HoldsItems(ChunkKind kind) {
  return kind >= ChunkKind::kTimed && kind <= ChunkKind::kStoppedWithCallers;
}
// Returns whether entries are samples.
constexpr bool HoldsSamples(ChunkKind kind) {
  return kind != ChunkKind::kProcesses && kind <= ChunkKind::kStoppedWithCallers;
}

struct Entry {
  uint64_t address = 0;
  uint8_t mode = 0;   // a Mode
  uint8_t event = 0;  // index into recording.json's events
  std::array<uint8_t, 6> reserved{};
};
static_assert(sizeof(Entry) == 16);

// Kinds that HoldsItems names hold items of different sizes, each a whole number of words:
// `entry_size` is the size of a word and `count` the number of words, so that every reader knows
// the chunk's length.
inline constexpr uint32_t kWordSize = 8;

// Thread number of sources that do not know threads.
inline constexpr uint32_t kNoThread = 0xffff'ffff;

// One sample of kTimed or kStoppedWithCallers. Its callers' addresses follow, innermost first:
// those in Xen, then those in the kernel, then those in user mode.
struct TimedEntry {
  uint64_t address = 0;
  uint8_t mode = 0;
  uint8_t event = 0;
  uint16_t xen_callers = 0;
  uint16_t kernel_callers = 0;
  uint16_t user_callers = 0;
  uint32_t vcpu = 0;
  uint32_t pid = kNoThread;
  uint32_t tid = kNoThread;
  uint16_t size = 48;  // bytes before the callers; a newer minor version may append
  // kStoppedWithCallers: the number of the vCPU's address space in items of kSpaceMap; 0: not
  // known.
  uint16_t space = 0;
  uint64_t begin = 0;  // start of the range [begin, end) of TSC cycles in which it was taken
  uint64_t end = 0;
};
static_assert(sizeof(TimedEntry) == 48);

// The stack of a sample of kTimed or kStoppedWithCallers, behind its TimedEntry, whose `size`
// includes it: of the former, that of user mode; of the latter, that of the mode of the sample. A
// chunk with such samples follows the chunk of kStacks that has their stacks, and its header's
// `vcpu` is that chunk's `entries_crc`. That chunk is one frame of zstd, with `entry_size` 1.
// Decompressed, it has at [at, at + size) the 17 registers by their DWARF numbers, 8 bytes each,
// then the bytes of the stack from the stack pointer on.
struct StackEntry {
  uint32_t at = 0;
  uint32_t size = 0;  // 0: none
};
static_assert(sizeof(StackEntry) == 8);
// A piece of another stack, from which the sample's stack was entered: an interrupt's handler in a
// kernel has a stack of its own. Some or none are behind the StackEntry, innermost first; the
// TimedEntry's `size` includes them.
struct OuterStackEntry {
  uint64_t address = 0;  // of the piece's first byte
  uint32_t at = 0;       // place in the decompressed chunk
  uint32_t size = 0;
};
static_assert(sizeof(OuterStackEntry) == 16);
// Limit of the decompressed bytes of a chunk of kStacks.
inline constexpr uint32_t kMaxStackBlockBytes = uint32_t{4} << 20;

// An entry of kClockAnswers: at some instant of the host's TSC in [before, after] the domain's was
// `guest`. All are in cycles.
struct ClockAnswer {
  uint64_t before = 0;
  uint64_t guest = 0;
  uint64_t after = 0;
  bool operator==(const ClockAnswer&) const = default;
};
static_assert(sizeof(ClockAnswer) == 24);

// An entry of kCpuTimes: what /proc/stat said of a CPU, at some instant of the domain's TSC in
// [before, after], in cycles. Times are in ns since the kernel started, in steps of 10 ms.
struct CpuTimesEntry {
  uint64_t before = 0;
  uint64_t after = 0;
  uint32_t cpu = 0;
  uint32_t reserved = 0;
  uint64_t busy = 0;  // user, nice, system, irq and softirq: five figures, each in whole steps
  uint64_t idle = 0;
  uint64_t iowait = 0;  // idle while a disk was waited for; a kernel may take some of it back
  uint64_t steal = 0;
  bool operator==(const CpuTimesEntry&) const = default;
};
static_assert(sizeof(CpuTimesEntry) == 56);
inline constexpr uint64_t kCpuTimesStep = 10'000'000;  // in ns: USER_HZ of x86-64

enum class ProcessEntryType : uint8_t {
  kName = 1,    // a thread has this name; with kByExec it has begun another program
  kMap = 2,     // a process maps a part of a file as executable
  kFork = 3,    // a process or thread began as a copy of `parent`
  kExit = 4,    // a thread ended
  kBehalf = 5,  // a process of dom0 works on behalf of `behalf`, from now on
  kThread = 6,  // a thread of the process had this name when recording began
  kCgroup = 7,  // the process was in this cgroup when recording began
  kFileId = 8,  // the file of the maps with this `file` has this build-id
  // An address space of a domain whose processes are not known maps a part of a file as executable,
  // at least since then; `pid` is its number.
  kSpaceMap = 9,
};
inline constexpr uint8_t kByExec = 1;  // bit of ProcessEntry::flags
// Bit of ProcessEntry::flags: it was so when recording began, and is not an event.
inline constexpr uint8_t kAtStart = 2;

// One item of kProcesses. A MapEntry follows if its type is kMap, kFileId or kSpaceMap, then a text
// (the name, or the path of the file) without a terminating zero, then zeros up to `size`.
struct ProcessEntry {
  uint16_t size = 0;  // size of the whole item in bytes, a multiple of kWordSize
  uint8_t type = 0;   // a ProcessEntryType
  uint8_t flags = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  // kFork: pid of the parent. kBehalf: the domain. kMap: 0, or the number of a file whose build-id
  // comes later, in the kFileId of the same domain with that number.
  uint32_t parent = 0;
  uint64_t when = 0;  // time in TSC cycles
  uint16_t text_size = 0;
  uint16_t reserved0 = 0;
  uint32_t reserved1 = 0;
};
static_assert(sizeof(ProcessEntry) == 32);

// All but the build-id is 0 for kFileId.
struct MapEntry {
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t offset = 0;  // offset in the file, in bytes
  uint8_t build_id_size = 0;
  std::array<uint8_t, 23> build_id{};  // or content id (symbolizer/elf/build_id.h)
};
static_assert(sizeof(MapEntry) == 48);

}  // namespace xenoscope::recording
