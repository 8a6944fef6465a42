#include "sampler/xenoprof_session.h"

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

absl::Status InitError(int error) {
  switch (-error) {
    case ENOSYS:
      return UnimplementedError(
          "this Xen has no xenoprof for dom0: Xen 4.18 and later are built without it by default, "
          "4.22 removed it, and a PVH dom0 never has it");
    case ENODEV:
      return UnimplementedError(
          "xenoprof does not support this processor (AMD families 0xf to 0x16, Intel family 6)");
    case EPERM:
    case EACCES:
      return PermissionError("Xen does not let this domain profile: record in dom0");
    default:
      return ErrnoError(-error, "xenoprof does not start");
  }
}

absl::Status GetBufferError(int error) {
  if (error == -EBUSY) {
    return PreconditionError(
        "the performance counters are in use by vPMU, or a profiler holds xenoprof's buffers: boot "
        "Xen without vpmu=, end the other profiler");
  }
  return ErrnoError(-error, "xenoprof gives no sample buffer");
}

absl::Status ReserveError(int error) {
  if (error == -EBUSY) {
    return PreconditionError(
        "Xen's NMI watchdog holds the performance counters: boot Xen without watchdog");
  }
  return ErrnoError(-error, "xenoprof cannot reserve the performance counters");
}

absl::Status PassiveError(DomainId domain, int error) {
  switch (-error) {
    case EINVAL:
    case ESRCH:
      return NotFoundError("there is no domain {} (any more): `xl list` shows those there are",
                           domain.value);
    case EBUSY:
      return PreconditionError("the sample buffers of domain {} are still in use", domain.value);
    default:
      return ErrnoError(-error, "cannot sample domain {}", domain.value);
  }
}

// Xen writes these words while they are read.
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

}  // namespace

namespace {

// What the next entry of a buffer is, if it is no escape.
enum class Next : uint8_t { kSample, kSampleOfChain, kCaller };

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

struct XenoprofSession::Buffer {
  Next next = Next::kSample;
  XenoprofBuffer* shared;
  const std::byte* entries;
  uint32_t size;  // entries
  Tsc previous_before;
  BufferCounters at_start;
  StreamInfo stream;
};

void XenoprofSession::Recover(XenoprofCalls& calls) {
  // Each step is refused where the killed session had not come so far, or had gone further.
  for (const XenoprofOp op :
       {XenoprofOp::kStop, XenoprofOp::kDisableVirq, XenoprofOp::kReleaseCounters,
        XenoprofOp::kResetPassiveList, XenoprofOp::kShutdown}) {
    calls.Call(op, {});
  }
}

absl::StatusOr<std::unique_ptr<XenoprofSession>> XenoprofSession::Open(
    XenoprofCalls& calls, std::span<const DomainId> passive, uint32_t samples,
    std::function<Tsc()> read_tsc) {
  if (passive.size() > kMaxPassiveDomains) {
    return InvalidError(
        "{} domains are too many: xenoprof samples up to {} beside dom0; choose "
        "them with --passive",
        passive.size(), kMaxPassiveDomains);
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<XenoprofSession> session(new XenoprofSession(calls, std::move(read_tsc)));
  XENOSCOPE_RETURN_IF_ERROR(session->Initialize(passive, samples));
  return session;
}

XenoprofSession::XenoprofSession(XenoprofCalls& calls, std::function<Tsc()> read_tsc)
    : calls_(calls), read_tsc_(std::move(read_tsc)) {}

XenoprofSession::~XenoprofSession() { Close().IgnoreError(); }

int XenoprofSession::Call(XenoprofOp op) { return calls_.Call(op, {}); }

template <typename T>
int XenoprofSession::Call(XenoprofOp op, T& argument) {
  return calls_.Call(op, std::as_writable_bytes(std::span(&argument, 1)));
}

absl::StatusOr<std::string> XenoprofSession::Probe(XenoprofCalls& calls) {
  XenoprofSession session(calls, [] { return Tsc{}; });
  XENOSCOPE_RETURN_IF_ERROR(session.BecomeInitiator());
  session.Call(XenoprofOp::kShutdown);
  session.state_ = State::kClosed;
  return session.cpu_type_;
}

absl::Status XenoprofSession::BecomeInitiator() {
  XenoprofInit init;
  if (const int error = Call(XenoprofOp::kInit, init); error < 0) {
    state_ = State::kClosed;  // nothing to give back
    return InitError(error);
  }
  if (init.is_primary == 0) {
    state_ = State::kClosed;
    return PermissionError("this domain may not profile others: record in dom0");
  }
  cpu_type_ =
      std::string(init.cpu_type.data(), strnlen(init.cpu_type.data(), init.cpu_type.size()));
  counters_ = static_cast<uint32_t>(std::max(init.num_events, 0));
  return absl::OkStatus();
}

absl::Status XenoprofSession::Initialize(std::span<const DomainId> passive, uint32_t samples) {
  XENOSCOPE_RETURN_IF_ERROR(BecomeInitiator());
  XenoprofGetBuffer get;
  get.max_samples = static_cast<int32_t>(samples);
  if (const int error = Call(XenoprofOp::kGetBuffer, get); error < 0) return GetBufferError(error);
  XENOSCOPE_RETURN_IF_ERROR(MapBuffers(kDom0, get.nbuf, get.bufsize, get.buf_gmaddr));

  Call(XenoprofOp::kResetActiveList);
  uint16_t self = kDom0.value;
  if (const int error = Call(XenoprofOp::kSetActive, self); error < 0) {
    return ErrnoError(-error, "cannot sample dom0");
  }
  Call(XenoprofOp::kResetPassiveList);
  for (const DomainId domain : passive) {
    XENOSCOPE_RETURN_IF_ERROR(AddPassive(domain, samples));
  }
  return absl::OkStatus();
}

absl::Status XenoprofSession::AddPassive(DomainId domain, uint32_t samples) {
  XenoprofPassive argument;
  argument.domain_id = domain.value;
  argument.max_samples = static_cast<int32_t>(samples);
  if (const int error = Call(XenoprofOp::kSetPassive, argument); error < 0) {
    return PassiveError(domain, error);
  }
  return MapBuffers(domain, argument.nbuf, argument.bufsize, argument.buf_gmaddr);
}

// The buffers of a domain's vCPUs follow one another, wherever pages end.
absl::Status XenoprofSession::MapBuffers(DomainId domain, int32_t count, int32_t size,
                                         uint64_t address) {
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
    Buffer& buffer = buffers_.emplace_back(Buffer{
        Next::kSample, shared, base + kEntriesOffset, shared->event_size, {}, Read(*shared), {}});
    buffer.stream.source = "xenoprof";
    buffer.stream.vcpu = {domain, VcpuId{shared->vcpu_id}};
  }
  return absl::OkStatus();
}

// Also for none: Xen may remember what a session before this one asked for.
absl::Status XenoprofSession::AskForCallers(uint32_t callers) {
  auto depth = static_cast<int32_t>(callers);
  const int error = Call(XenoprofOp::kSetBacktrace, depth);
  if (error >= 0 || callers == 0) return absl::OkStatus();
  if (error == -ENOSYS || error == -EINVAL) {
    return UnimplementedError("this Xen follows no call chains: record without -g");
  }
  return ErrnoError(-error, "xenoprof refuses call chains");
}

absl::Status XenoprofSession::Program(std::span<const PmuEvent> events, uint32_t callers) {
  if (state_ != State::kInitialized) return InternalError("xenoprof programmed out of order");
  XENOSCOPE_RETURN_IF_ERROR(AskForCallers(callers));
  if (events.size() > counters_) {
    return InvalidError("{} events, and this processor has {} counters: give fewer -e",
                        events.size(), counters_);
  }
  if (const int error = Call(XenoprofOp::kReserveCounters); error < 0) return ReserveError(error);
  state_ = State::kReady;  // as to what has to be given back
  for (uint32_t i = 0; i < counters_; ++i) {
    XenoprofCounter counter;
    counter.ind = i;
    if (i < events.size()) {
      counter.count = events[i].period;
      counter.enabled = 1;
      counter.event = events[i].code;
      counter.unit_mask = events[i].unit_mask;
      // A PV guest's kernel runs in ring 3 and Xen in ring 0, as an HVM guest's kernel does: what
      // was not asked for is told by the samples' modes.
      counter.user = events[i].user || events[i].kernel ? 1 : 0;
      counter.hypervisor = counter.kernel = events[i].kernel || events[i].hypervisor ? 1 : 0;
    }
    if (const int error = Call(XenoprofOp::kCounter, counter); error < 0) {
      return ErrnoError(-error, "xenoprof refuses counter {}", i);
    }
  }
  if (const int error = Call(XenoprofOp::kSetupEvents); error < 0) {
    return ErrnoError(-error, "xenoprof refuses the events");
  }
  events_.assign(events.begin(), events.end());
  return absl::OkStatus();
}

absl::Status XenoprofSession::Start(SamplingClock* clock) {
  if (state_ != State::kReady) return InternalError("xenoprof started out of order");
  for (Buffer& buffer : buffers_) buffer.at_start = Read(*buffer.shared);
  const Tsc started = read_tsc_();
  if (const int error = Call(XenoprofOp::kEnableVirq); error < 0) {
    return ErrnoError(-error, "xenoprof does not take up sampling");
  }
  if (const int error = Call(XenoprofOp::kStart); error < 0) {
    return ErrnoError(-error, "xenoprof does not start sampling");
  }
  state_ = State::kProfiling;
  sampled_.begin = started;
  for (Buffer& buffer : buffers_) buffer.previous_before = started;
  clock_ = clock;
  return clock_ == nullptr ? absl::OkStatus() : clock_->Start();
}

double XenoprofSession::Drain(const Sink& sink) {
  double fullest = 0;
  for (Buffer& buffer : buffers_) fullest = std::max(fullest, DrainBuffer(buffer, sink));
  return fullest;
}

double XenoprofSession::DrainBuffer(Buffer& buffer, const Sink& sink) {
  const Tsc before = read_tsc_();
  const uint32_t head = LoadShared(buffer.shared->event_head);
  const Tsc after = read_tsc_();
  const DrainTimes times{buffer.previous_before, before, after};
  buffer.previous_before = before;
  uint32_t tail = LoadShared(buffer.shared->event_tail);
  if (head >= buffer.size || tail >= buffer.size) return 0;  // Xen drops samples then, and says so
  const uint32_t used = head >= tail ? head - tail : head + buffer.size - tail;

  entries_.clear();
  with_callers_.Clear();
  while (tail != head) {
    XenoprofEntry found;
    std::memcpy(&found, buffer.entries + size_t{tail} * sizeof found, sizeof found);
    tail = tail + 1 == buffer.size ? 0 : tail + 1;
    TakeEntry(buffer, times, found);
  }
  // Xen may be following frames just now: callers that come later are counted, but miss their
  // sample.
  EndChain();
  std::atomic_ref(buffer.shared->event_tail).store(tail, std::memory_order_release);
  if (!entries_.empty() || !with_callers_.empty()) {
    sink({buffer.stream.vcpu, times, entries_, with_callers_});
  }
  return static_cast<double>(used) / buffer.size;
}

// With call chains Xen puts an escape before each sample and its callers behind it, which nothing
// else tells from samples.
void XenoprofSession::TakeEntry(Buffer& buffer, const DrainTimes& times,
                                const XenoprofEntry& found) {
  StreamInfo& stream = buffer.stream;
  ++stream.drained;
  if (found.eip == kEscapeCode && found.event == kTraceBegin) {
    ++stream.escapes;
    EndChain();
    buffer.next = Next::kSampleOfChain;
    return;
  }
  if (buffer.next == Next::kCaller) {
    ++stream.callers;
    if (chain_) AddCaller(found);
    return;
  }
  const bool of_chain = buffer.next == Next::kSampleOfChain;
  if (of_chain) buffer.next = Next::kCaller;
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

void XenoprofSession::AddCaller(const XenoprofEntry& found) {
  TimedEntry& chain = *chain_;
  // Outward: Xen, the kernel, user mode. What breaks the order is no caller.
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

void XenoprofSession::EndChain() {
  if (chain_) with_callers_.Add(*chain_, chain_callers_);
  chain_.reset();
  chain_callers_.clear();
}

absl::Status XenoprofSession::Stop(const Sink& sink) {
  if (state_ != State::kProfiling) return InternalError("xenoprof stopped out of order");
  if (clock_ != nullptr) clock_->Stop();
  const int error = Call(XenoprofOp::kStop);
  sampled_.end = read_tsc_();
  if (error < 0) return ErrnoError(-error, "xenoprof does not stop sampling");
  state_ = State::kStopped;
  Drain(sink);
  for (Buffer& buffer : buffers_) {
    buffer.stream.logged = Difference(Read(*buffer.shared), buffer.at_start);
    buffer.stream.complete = true;
  }
  return absl::OkStatus();
}

absl::Status XenoprofSession::Close() {
  if (state_ == State::kClosed) return absl::OkStatus();
  absl::Status status;
  const auto keep = [&status](const char* what, int error) {
    if (error < 0 && status.ok()) status = ErrnoError(-error, "xenoprof: {}", what);
  };
  if (state_ == State::kProfiling) {
    status = Stop([](const Drained&) {});
  }
  for (Buffer& buffer : buffers_) buffer.shared = nullptr;
  for (const Mapping& mapping : mappings_) calls_.Unmap(mapping.at, mapping.size);
  mappings_.clear();
  if (state_ == State::kInitialized) {
    // It may have failed before dom0 was listed; what is not there to undo refuses.
    Call(XenoprofOp::kResetPassiveList);
    Call(XenoprofOp::kDisableVirq);
    Call(XenoprofOp::kResetActiveList);
  } else {
    // Not listed as enabled when it failed before that: refused, and harmless.
    keep("disable_virq", Call(XenoprofOp::kDisableVirq));
    keep("release_counters", Call(XenoprofOp::kReleaseCounters));
  }
  keep("shutdown", Call(XenoprofOp::kShutdown));
  state_ = State::kClosed;
  return status;
}

std::vector<StreamInfo> XenoprofSession::Streams() const {
  std::vector<StreamInfo> streams;
  streams.reserve(buffers_.size());
  for (const Buffer& buffer : buffers_) {
    StreamInfo& stream = streams.emplace_back(buffer.stream);
    if (state_ == State::kProfiling) {
      stream.logged = Difference(Read(*buffer.shared), buffer.at_start);
    }
  }
  return streams;
}

}  // namespace xenoscope::sampler
