#include "report/export/perfetto_packets.h"

#include <algorithm>
#include <utility>

#include "report/markup.h"

namespace xenoscope::report {
namespace {

using perfetto::EventField;
using perfetto::InternedField;
using perfetto::kInstant;
using perfetto::kSequenceNumber;
using perfetto::kSliceBegin;
using perfetto::kSliceEnd;
using perfetto::kStateCleared;
using perfetto::Message;
using perfetto::PacketField;
using perfetto::ProcessField;
using perfetto::SystemField;
using perfetto::TextField;
using perfetto::ThreadField;
using perfetto::TraceField;
using perfetto::TrackField;
using perfetto::UtsnameField;

constexpr size_t kChunkBytes = size_t{1} << 20;  // the bytes that are kept before they are written

}  // namespace

PerfettoPackets::PerfettoPackets(const Clock& clock, Sink sink, uint32_t machine)
    : clock_(clock), sink_(std::move(sink)), machine_(machine) {
  std::string packet;
  Message<PacketField> message(packet);
  message.add_uint32(PacketField::kSequence, kSequenceNumber);
  message.add_uint32(PacketField::kFlags, kStateCleared);
  PutPacket(packet);
}

PerfettoPackets PerfettoPackets::ForMachine(uint32_t machine, const std::string& name) const {
  PerfettoPackets packets(clock_, sink_, machine);
  packets.zero_ = zero_;
  std::string packet;
  {
    Message<PacketField> message(packet);
    message.add_uint64(PacketField::kTimestamp, 0);
    Message<SystemField> system(message, PacketField::kSystemInfo);
    system.add_string(SystemField::kMachineName, Printable(name));
    Message<UtsnameField> utsname(system, SystemField::kUtsname);
    utsname.add_string(UtsnameField::kSystem, "Linux");
    // By the release Perfetto knows what numbers of thread states mean (PerfettoSched::kLost).
    utsname.add_string(UtsnameField::kRelease, "4.14.x (numbers of thread states)");
    utsname.add_string(UtsnameField::kMachine, "x86_64");
  }
  packets.PutPacket(packet);
  return packets;
}

uint64_t PerfettoPackets::Time(Tsc tsc) const {
  const Tsc zero = zero_.value_or(tsc);
  return clock_.Nanoseconds(std::max(tsc, zero) - zero);
}

template <typename F>
void PerfettoPackets::PutDescriptor(uint64_t track, std::optional<uint64_t> from, F add) {
  std::string packet;
  Message<PacketField> message(packet);
  if (from) message.add_uint64(PacketField::kTimestamp, *from);
  message.add_uint32(PacketField::kSequence, kSequenceNumber);
  {
    Message<TrackField> put(message, PacketField::kTrack);
    put.add_uint64(TrackField::kUuid, track);
    add(put);
  }
  PutPacket(packet);
}

void PerfettoPackets::PutTrack(uint64_t track, uint64_t parent, std::string_view name) {
  PutDescriptor(track, std::nullopt, [&](Message<TrackField>& put) {
    put.add_uint64(TrackField::kParent, parent);
    put.add_string(TrackField::kName, std::string(name));
  });
}

void PerfettoPackets::PutProcess(uint64_t track, uint32_t pid, const std::string& name,
                                 std::optional<uint64_t> from) {
  PutDescriptor(track, from, [&](Message<TrackField>& put) {
    Message<ProcessField> process(put, TrackField::kProcess);
    process.add_int32(ProcessField::kPid, static_cast<int32_t>(pid));
    process.add_string(ProcessField::kName, Printable(name));
  });
}

void PerfettoPackets::PutThread(uint64_t track, uint32_t pid, uint32_t tid, const std::string& name,
                                std::optional<uint64_t> from) {
  PutDescriptor(track, from, [&](Message<TrackField>& put) {
    Message<ThreadField> thread(put, TrackField::kThread);
    thread.add_int32(ThreadField::kPid, static_cast<int32_t>(pid));
    thread.add_int32(ThreadField::kTid, static_cast<int32_t>(tid));
    thread.add_string(ThreadField::kName, Printable(name));
  });
}

void PerfettoPackets::PutSlice(uint64_t track, TscRange range, std::string_view name) {
  const uint64_t number = NameNumber(name);
  PutEvent(track, range.begin, kSliceBegin, [number](Message<EventField>& event) {
    event.add_uint64(EventField::kNameIid, number);
  });
  PutSliceEnd(track, range.end);
}

void PerfettoPackets::PutSliceEnd(uint64_t track, Tsc at) {
  PutEvent(track, at, kSliceEnd, [](Message<EventField>& /*event*/) {});
}

void PerfettoPackets::PutInstant(uint64_t track, Tsc at, std::string_view name) {
  const uint64_t number = NameNumber(name);
  PutEvent(track, at, kInstant, [number](Message<EventField>& event) {
    event.add_uint64(EventField::kNameIid, number);
  });
}

void PerfettoPackets::PutText(uint64_t track, Tsc at, int32_t type, const std::string& text) {
  PutEvent(track, at, type, [&](Message<EventField>& event) {
    event.add_string(EventField::kName, Printable(text));
  });
}

uint64_t PerfettoPackets::NameNumber(std::string_view name) {
  const auto [at, is_new] = names_.try_emplace(Printable(name), names_.size() + 1);
  if (is_new) {
    Message<InternedField> interned(interned_);
    Message<TextField> text(interned, InternedField::kEventNames);
    text.add_uint64(TextField::kIid, at->second);
    text.add_string(TextField::kText, at->first);
  }
  return at->second;
}

void PerfettoPackets::PutPacket(std::string_view packet) {
  std::string whole(packet);
  if (machine_ != 0) {
    Message<PacketField> message(whole);
    message.add_uint32(PacketField::kMachine, machine_);
  }
  if (!interned_.empty()) {
    // Interned data is new only before a packet that refers to it, and all such packets are on the
    // same sequence.
    Message<PacketField> message(whole);
    message.add_message(PacketField::kInterned, interned_);
    interned_.clear();
  }
  Message<TraceField> trace(out_);
  trace.add_message(TraceField::kPacket, whole);
  Flush(kChunkBytes);
}

void PerfettoPackets::Flush(size_t min_bytes) {
  if (out_.size() < min_bytes || out_.empty()) return;
  if (status_.ok()) status_ = sink_(out_);
  out_.clear();
}

absl::Status PerfettoPackets::Finish() {
  Flush(1);
  return status_;
}

}  // namespace xenoscope::report
