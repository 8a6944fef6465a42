// Writes the packets of a Perfetto trace (google/perfetto, protos/perfetto/trace): tracks, and what
// is on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <protozero/pbf_builder.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/tsc.h"

namespace xenoscope::report {

namespace perfetto {

// The field numbers of protos/perfetto/trace.
enum class TraceField : protozero::pbf_tag_type { kPacket = 1 };
enum class PacketField : protozero::pbf_tag_type {
  kFtraceEvents = 1,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInterned = 12,
  kFlags = 13,
  kSystemInfo = 45,
  kTrack = 60,
  kPerfSample = 66,
  kMachine = 98,
};
enum class SystemField : protozero::pbf_tag_type { kUtsname = 1, kMachineName = 17 };
enum class UtsnameField : protozero::pbf_tag_type { kSystem = 1, kRelease = 3, kMachine = 4 };
enum class TrackField : protozero::pbf_tag_type {
  kUuid = 1,
  kName = 2,
  kProcess = 3,
  kThread = 4,
  kParent = 5,
  kCounter = 8,
};
enum class ProcessField : protozero::pbf_tag_type { kPid = 1, kName = 6 };
enum class ThreadField : protozero::pbf_tag_type { kPid = 1, kTid = 2, kName = 5 };
enum class CounterField : protozero::pbf_tag_type { kUnitName = 6 };
enum class EventField : protozero::pbf_tag_type {
  kType = 9,
  kNameIid = 10,
  kTrack = 11,
  kName = 23,
  kCounterValue = 30,
  kFlows = 47,
  kEndedFlows = 48,
};
enum class InternedField : protozero::pbf_tag_type {
  kEventNames = 2,
  kFunctionNames = 5,
  kFrames = 6,
  kCallstacks = 7,
  kMappingPaths = 17,
  kMappings = 19,
};
// The fields of EventName and of InternedString.
enum class TextField : protozero::pbf_tag_type { kIid = 1, kText = 2 };
enum class MappingField : protozero::pbf_tag_type { kIid = 1, kPath = 7 };
enum class FrameField : protozero::pbf_tag_type { kIid = 1, kFunction = 2, kMapping = 3, kPc = 4 };
enum class CallstackField : protozero::pbf_tag_type { kIid = 1, kFrames = 2 };
enum class SampleField : protozero::pbf_tag_type {
  kCpu = 1,
  kPid = 2,
  kTid = 3,
  kCallstack = 4,
  kMode = 5,
};

enum class BundleField : protozero::pbf_tag_type { kCpu = 1, kEvent = 2, kLostEvents = 3 };
enum class FtraceField : protozero::pbf_tag_type {
  kTimestamp = 1,
  kPid = 2,
  kSchedSwitch = 4,
  kSchedWaking = 20,
  kTaskNewtask = 235,
};
enum class SwitchField : protozero::pbf_tag_type {
  kPrevComm = 1,
  kPrevPid = 2,
  kPrevPrio = 3,
  kPrevState = 4,
  kNextComm = 5,
  kNextPid = 6,
  kNextPrio = 7,
};
enum class WakingField : protozero::pbf_tag_type { kComm = 1, kPid = 2, kPrio = 3 };
enum class NewtaskField : protozero::pbf_tag_type { kPid = 1, kComm = 2, kCloneFlags = 3 };

// The values of TrackEvent.Type.
inline constexpr int32_t kSliceBegin = 1;
inline constexpr int32_t kSliceEnd = 2;
inline constexpr int32_t kInstant = 3;
inline constexpr int32_t kCounter = 4;
// The values of TracePacket.SequenceFlags.
inline constexpr uint32_t kStateCleared = 1;
inline constexpr uint32_t kNeedsState = 2;
inline constexpr uint32_t kSequenceNumber = 1;

template <typename Field>
using Message = protozero::pbf_builder<Field>;

}  // namespace perfetto

// Takes the packets of one machine, and gives the bytes of the file to a sink. All packets are of
// one sequence. Machine 0 is the host; each machine has its own CPUs, processes and threads.
class PerfettoPackets {
 public:
  // Takes the next bytes of the file.
  using Sink = std::function<absl::Status(std::string_view)>;

  // `clock` outlives this, and may be set up to the first event.
  PerfettoPackets(const Clock& clock, Sink sink) : PerfettoPackets(clock, std::move(sink), 0) {}

  // Returns what takes the packets of another machine of the same file: of a Linux with this name.
  // Begin was called before.
  [[nodiscard]] PerfettoPackets ForMachine(uint32_t machine, const std::string& name) const;

  // Timestamps are nanoseconds since this time, 0 before it; the first call counts.
  void Begin(Tsc zero) {
    if (!zero_) zero_ = zero;
  }
  [[nodiscard]] uint64_t Time(Tsc tsc) const;

  void PutTrack(uint64_t track, uint64_t parent, std::string_view name);
  // `from` is when the process or thread has begun, in the nanoseconds of Time. It says which one
  // is meant where others had the number before; nothing: none had it.
  void PutProcess(uint64_t track, uint32_t pid, const std::string& name,
                  std::optional<uint64_t> from = std::nullopt);
  void PutThread(uint64_t track, uint32_t pid, uint32_t tid, const std::string& name,
                 std::optional<uint64_t> from = std::nullopt);
  // Puts an event of `type`. `add(message)` adds the other fields.
  template <typename F>
  void PutEvent(uint64_t track, Tsc at, int32_t type, F add) {
    std::string packet;
    perfetto::Message<perfetto::PacketField> message(packet);
    message.add_uint64(perfetto::PacketField::kTimestamp, Time(at));
    message.add_uint32(perfetto::PacketField::kSequence, perfetto::kSequenceNumber);
    message.add_uint32(perfetto::PacketField::kFlags, perfetto::kNeedsState);
    {
      perfetto::Message<perfetto::EventField> event(message, perfetto::PacketField::kTrackEvent);
      event.add_enum(perfetto::EventField::kType, type);
      event.add_uint64(perfetto::EventField::kTrack, track);
      add(event);
    }
    PutPacket(packet);
  }
  // Ends the slice that began last on the track.
  void PutSliceEnd(uint64_t track, Tsc at);
  // The name is kept: for names of which there are not many.
  void PutSlice(uint64_t track, TscRange range, std::string_view name);
  void PutInstant(uint64_t track, Tsc at, std::string_view name);
  // The text is not kept: a guest may choose as many texts as it likes.
  void PutText(uint64_t track, Tsc at, int32_t type, const std::string& text);
  // Returns the number of a name that is kept.
  uint64_t NameNumber(std::string_view name);
  // The InternedData for the next packet.
  std::string& interned() { return interned_; }
  void PutPacket(std::string_view packet);

  // Returns the sink's first error.
  [[nodiscard]] absl::Status status() const { return status_; }
  // Writes the rest. Errors: as status().
  absl::Status Finish();

 private:
  PerfettoPackets(const Clock& clock, Sink sink, uint32_t machine);

  // Puts the description of a track. `add(message)` adds the fields but its number.
  template <typename F>
  void PutDescriptor(uint64_t track, std::optional<uint64_t> from, F add);
  void Flush(size_t min_bytes);

  const Clock& clock_;
  Sink sink_;
  uint32_t machine_;
  absl::Status status_;
  std::optional<Tsc> zero_;
  std::string out_;
  std::string interned_;
  absl::flat_hash_map<std::string, uint64_t> names_;
};

}  // namespace xenoscope::report
