#include "sampler/xenoprof/xenoprof_buffers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/mode.h"

namespace xenoscope::sampler {
namespace {

using recording::BufferCounters;
using recording::DrainTimes;
using recording::Entry;
using recording::StreamInfo;
using recording::TimedEntry;

// Reads a word that Xen may be writing to.
template <typename T>
T LoadShared(T& word) {
  return std::atomic_ref<T>(word).load(std::memory_order_acquire);
}

BufferCounters Read(XenoprofBuffer& shared) {
  return {LoadShared(shared.xen_samples), LoadShared(shared.kernel_samples),
          LoadShared(shared.user_samples), LoadShared(shared.lost_samples)};
}

BufferCounters Difference(const BufferCounters& end, const BufferCounters& start) {
  return {end.xen - start.xen, end.kernel - start.kernel, end.user - start.user,
          end.lost - start.lost};
}

bool IsWanted(const PmuEvent& event, Mode mode) {
  switch (mode) {
    case Mode::kUser:
      return event.user;
    case Mode::kKernel:
      return event.kernel;
    case Mode::kXen:
      return event.hypervisor;
  }
  return false;
}

}  // namespace

struct XenoprofBuffers::Buffer {
  // The kind of the next entry, if it is not an escape.
  enum class Expected : uint8_t { kSample, kSampleOfChain, kCaller };

  Expected next = Expected::kSample;
  XenoprofBuffer* shared;
  const std::byte* entries;
  uint32_t size;  // number of entries
  Tsc previous_before{};
  BufferCounters at_start;
  StreamInfo stream{};
};

XenoprofBuffers::XenoprofBuffers(XenoprofCalls& calls, std::function<Tsc()> read_tsc)
    : calls_(calls), read_tsc_(std::move(read_tsc)) {}

XenoprofBuffers::~XenoprofBuffers() { Unmap(); }

absl::Status XenoprofBuffers::MapOwn(DomainId self, uint32_t samples) {
  XenoprofGetBuffer get;
  get.max_samples = static_cast<int32_t>(samples);
  const int error = calls_.CallWith(XenoprofOp::kGetBuffer, get);
  if (error == -EBUSY) {
    return PreconditionError(
        "the performance counters are in use by vPMU, or a profiler holds xenoprof's buffers: boot "
        "Xen without vpmu=, end the other profiler");
  }
  if (error < 0) return ErrnoError(-error, "xenoprof gives no sample buffer");
  return Map(self, get.nbuf, get.bufsize, get.buf_gmaddr);
}

// The buffers of a domain's vCPUs are adjacent, without alignment to pages.
absl::Status XenoprofBuffers::Map(DomainId domain, int32_t count, int32_t size, uint64_t address) {
  if (count <= 0 || size <= static_cast<int32_t>(kEntriesOffset)) {
    return InternalError("Xen gave domain {} {} sample buffers of {} bytes", domain.value, count,
                         size);
  }
  const size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(size);
  XENOSCOPE_ASSIGN_OR_RETURN(std::byte* const at, calls_.Map(address, bytes));
  mappings_.push_back({at, bytes});
  for (int32_t i = 0; i < count; ++i) {
    std::byte* const base = at + static_cast<size_t>(i) * static_cast<size_t>(size);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory shared with Xen
    auto* const shared = reinterpret_cast<XenoprofBuffer*>(base);
    const size_t room = (static_cast<size_t>(size) - kEntriesOffset) / sizeof(XenoprofEntry);
    if (shared->event_size == 0 || shared->event_size > room) {
      return InternalError("Xen says that a buffer of domain {} holds {} samples, in room for {}",
                           domain.value, shared->event_size, room);
    }
    Buffer& buffer = buffers_.emplace_back(Buffer{.next = Buffer::Expected::kSample,
                                                  .shared = shared,
                                                  .entries = base + kEntriesOffset,
                                                  .size = shared->event_size,
                                                  .at_start = Read(*shared)});
    buffer.stream.source = "xenoprof";
    buffer.stream.vcpu = {domain, VcpuId{shared->vcpu_id}};
  }
  return absl::OkStatus();
}

void XenoprofBuffers::Unmap() {
  for (Buffer& buffer : buffers_) buffer.shared = nullptr;
  for (const Mapping& mapping : mappings_) calls_.Unmap(mapping.at, mapping.size);
  mappings_.clear();
}

void XenoprofBuffers::SetEvents(std::span<const PmuEvent> events, uint32_t counters) {
  events_.assign(events.begin(), events.end());
  counters_ = counters;
}

void XenoprofBuffers::Begin(Tsc now) {
  for (Buffer& buffer : buffers_) {
    buffer.at_start = Read(*buffer.shared);
    buffer.previous_before = now;
  }
}

double XenoprofBuffers::Drain(const Sink& sink) {
  double fullest = 0;
  for (Buffer& buffer : buffers_) fullest = std::max(fullest, DrainBuffer(buffer, sink));
  return fullest;
}

double XenoprofBuffers::DrainBuffer(Buffer& buffer, const Sink& sink) {
  const Tsc before = read_tsc_();
  const uint32_t head = LoadShared(buffer.shared->event_head);
  const Tsc after = read_tsc_();
  const DrainTimes times{buffer.previous_before, before, after};
  buffer.previous_before = before;
  uint32_t tail = LoadShared(buffer.shared->event_tail);
  // In this state Xen drops samples, and counts them.
  if (head >= buffer.size || tail >= buffer.size) return 0;
  const uint32_t used = head >= tail ? head - tail : head + buffer.size - tail;

  entries_.clear();
  with_callers_.Clear();
  while (tail != head) {
    XenoprofEntry found;
    std::memcpy(&found, buffer.entries + size_t{tail} * sizeof found, sizeof found);
    tail = tail + 1 == buffer.size ? 0 : tail + 1;
    TakeEntry(buffer, times, found);
  }
  // Xen may be following frames now: callers that come later are counted, but belong to no sample
  // here.
  EndChain();
  std::atomic_ref(buffer.shared->event_tail).store(tail, std::memory_order_release);
  if (!entries_.empty() || !with_callers_.empty()) {
    sink({buffer.stream.vcpu, times, entries_, with_callers_});
  }
  return static_cast<double>(used) / buffer.size;
}

// With call chains Xen writes an escape before each sample and the callers behind it; nothing else
// distinguishes callers from samples.
void XenoprofBuffers::TakeEntry(Buffer& buffer, const DrainTimes& times,
                                const XenoprofEntry& found) {
  StreamInfo& stream = buffer.stream;
  ++stream.drained;
  if (found.eip == kEscapeCode && found.event == kTraceBegin) {
    ++stream.escapes;
    EndChain();
    buffer.next = Buffer::Expected::kSampleOfChain;
    return;
  }
  if (buffer.next == Buffer::Expected::kCaller) {
    ++stream.callers;
    if (chain_) AddCaller(found);
    return;
  }
  const bool of_chain = buffer.next == Buffer::Expected::kSampleOfChain;
  if (of_chain) buffer.next = Buffer::Expected::kCaller;
  if (found.mode > static_cast<uint8_t>(Mode::kXen) || found.event >= counters_) {
    ++stream.invalid;
    return;
  }
  if (found.event >= events_.size()) {
    ++stream.other_counters;
    return;
  }
  if (!IsWanted(events_[found.event], static_cast<Mode>(found.mode))) {
    ++stream.other_modes;
    return;
  }
  ++stream.kept;
  if (!of_chain) {
    Entry entry;
    entry.address = found.eip;
    entry.mode = found.mode;
    entry.event = found.event;
    entries_.push_back(entry);
    return;
  }
  chain_.emplace();
  chain_->address = found.eip;
  chain_->mode = found.mode;
  chain_->event = found.event;
  chain_->vcpu = stream.vcpu.vcpu.value;
  chain_->begin = times.previous_before.value;
  chain_->end = times.after.value;
}

void XenoprofBuffers::AddCaller(const XenoprofEntry& found) {
  TimedEntry& chain = *chain_;
  // The order is Xen, kernel, user mode. An entry out of order is not a caller.
  if (found.mode == static_cast<uint8_t>(Mode::kXen)) {
    if (chain.kernel_callers + chain.user_callers > 0) return;
    ++chain.xen_callers;
  } else if (found.mode == static_cast<uint8_t>(Mode::kKernel)) {
    if (chain.user_callers > 0) return;
    ++chain.kernel_callers;
  } else {
    ++chain.user_callers;
  }
  chain_callers_.push_back(found.eip);
}

void XenoprofBuffers::EndChain() {
  if (chain_) with_callers_.Add(*chain_, chain_callers_);
  chain_.reset();
  chain_callers_.clear();
}

void XenoprofBuffers::End(const Sink& sink) {
  Drain(sink);
  for (Buffer& buffer : buffers_) {
    buffer.stream.logged = Difference(Read(*buffer.shared), buffer.at_start);
    buffer.stream.complete = true;
  }
}

XenoprofBuffers::Sink SinkTo(recording::SampleWriter& writer) {
  return [&writer](const XenoprofBuffers::Drained& drained) {
    writer.Append(drained.vcpu, drained.times, drained.entries);
    writer.Append(drained.vcpu.domain, drained.with_callers);
  };
}

std::vector<StreamInfo> XenoprofBuffers::Streams() const {
  std::vector<StreamInfo> streams;
  streams.reserve(buffers_.size());
  for (const Buffer& buffer : buffers_) {
    StreamInfo& stream = streams.emplace_back(buffer.stream);
    if (stream.complete || buffer.shared == nullptr) continue;
    stream.logged = Difference(Read(*buffer.shared), buffer.at_start);
  }
  return streams;
}

}  // namespace xenoscope::sampler
