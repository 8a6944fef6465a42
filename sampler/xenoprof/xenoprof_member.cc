#include "sampler/xenoprof/xenoprof_member.h"

#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::steady_clock;

constexpr auto kDrainInterval = std::chrono::milliseconds(5);
// Samples of one vCPU's buffer: the agent has to wait for a processor like any program, and the
// buffer is not drained meanwhile.
constexpr uint32_t kBufferSamples = 8192;

}  // namespace

absl::StatusOr<std::unique_ptr<XenoprofMember>> XenoprofMember::Open(
    std::unique_ptr<XenoprofCalls> calls, const std::vector<EventSpec>& events, uint64_t clock_hz,
    std::function<Tsc()> read_tsc) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<XenoprofMember> member(new XenoprofMember(std::move(calls), std::move(read_tsc)));
  absl::StatusOr<XenoprofCpu> cpu = InitXenoprof(*member->calls_);
  if (absl::IsPermissionDenied(cpu.status())) {
    return PermissionError(
        "the guest may not make the hypercall: its Linux wants xen-privcmd to be loaded with "
        "unrestricted=1");
  }
  XENOSCOPE_RETURN_IF_ERROR(cpu.status());
  member->cpu_ = *std::move(cpu);
  for (const EventSpec& spec : events) {
    XENOSCOPE_ASSIGN_OR_RETURN(member->events_.emplace_back(),
                               ResolvePmuEvent(spec, member->cpu_.type, clock_hz));
  }
  if (events.empty()) member->events_ = {DefaultEvent(member->cpu_.type, clock_hz)};
  member->buffers_.SetEvents(member->events_, member->cpu_.counters);
  return member;
}

XenoprofMember::XenoprofMember(std::unique_ptr<XenoprofCalls> calls, std::function<Tsc()> read_tsc)
    : calls_(std::move(calls)),
      read_tsc_(read_tsc),
      drain_timer_(kDrainInterval),
      buffers_(*calls_, std::move(read_tsc)) {}

XenoprofMember::~XenoprofMember() { Close().IgnoreError(); }

recording::SourceInfo XenoprofMember::Info() const {
  return {"xenoprof", cpu_.type,
          static_cast<uint64_t>(std::chrono::nanoseconds(kDrainInterval).count())};
}

std::vector<recording::EventInfo> XenoprofMember::Events() const {
  std::vector<recording::EventInfo> events;
  for (const PmuEvent& event : events_) {
    events.push_back({.name = event.name,
                      .code = event.code,
                      .unit_mask = event.unit_mask,
                      .period = event.period,
                      .clocked_by = "pmu",
                      .modes = ModeSet{event.user, event.kernel, event.hypervisor}});
  }
  return events;
}

absl::StatusOr<bool> XenoprofMember::Enlist() {
  if (!buffers_.mapped()) {
    // These are the domain's own buffers; to itself it is domain 0.
    const absl::Status mapped = buffers_.MapOwn(kDom0, kBufferSamples);
    if (absl::IsFailedPrecondition(mapped)) {
      // An earlier agent has left them shared. Taking part and leaving gives them back, but also
      // removes the domain from the list.
      if (calls_->Call(XenoprofOp::kEnableVirq) == 0 &&
          calls_->Call(XenoprofOp::kDisableVirq) == 0) {
        return true;
      }
    }
    XENOSCOPE_RETURN_IF_ERROR(mapped);
  }
  if (const int error = calls_->Call(XenoprofOp::kEnableVirq); error < 0) {
    return ErrnoError(-error, "Xen does not let it take part");
  }
  buffers_.Begin(read_tsc_());  // dom0 may start before this agent is scheduled
  return false;
}

absl::Status XenoprofMember::Start() {
  if (!buffers_.mapped()) return PreconditionError("it does not take part");
  sampled_.begin = read_tsc_();
  drain_timer_.Start(steady_clock::now());
  return absl::OkStatus();
}

absl::Status XenoprofMember::Collect(recording::SampleWriter& writer) {
  const steady_clock::time_point begin = steady_clock::now();
  const double fill = buffers_.Drain(SinkTo(writer));
  drain_timer_.Drained(begin, steady_clock::now(), fill);
  return absl::OkStatus();
}

absl::Status XenoprofMember::OnDomainCreated(const recording::DomainInfo& /*domain*/) {
  return UnimplementedError("a guest samples itself alone");
}

absl::Status XenoprofMember::Stop(recording::SampleWriter& writer) {
  sampled_.end = read_tsc_();
  buffers_.End(SinkTo(writer));
  return absl::OkStatus();
}

absl::Status XenoprofMember::Close() {
  if (!buffers_.mapped()) return absl::OkStatus();
  buffers_.Unmap();
  if (const int error = calls_->Call(XenoprofOp::kDisableVirq); error < 0) {
    return ErrnoError(-error, "it keeps its xenoprof buffers until it takes part again");
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
