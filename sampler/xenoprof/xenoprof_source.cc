#include "sampler/xenoprof/xenoprof_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {
namespace {

using recording::Role;
using std::chrono::steady_clock;

constexpr std::string_view kNoteHpet = "hpet";
constexpr std::string_view kNoteSampling = "sampling";

// Limit of callers, as perf's by default (kernel.perf_event_max_stack).
constexpr uint32_t kMaxCallers = 127;

}  // namespace

absl::StatusOr<std::unique_ptr<XenoprofSource>> XenoprofSource::Open(XenoprofRequest request,
                                                                     const SessionLock& lock) {
  if (!Dom0IsPv()) {
    return UnimplementedError("dom0 is not a PV domain, and xenoprof is for PV domains only");
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<XenoprofSource> source(new XenoprofSource(std::move(request), lock));
  XENOSCOPE_RETURN_IF_ERROR(source->Ready());
  return source;
}

XenoprofSource::~XenoprofSource() { Close().IgnoreError(); }

absl::Status XenoprofSource::Ready() {
  XENOSCOPE_ASSIGN_OR_RETURN(calls_, OpenXenoprofCalls(XenoprofRole::kInitiator));
  XenoprofSession::Recover(*calls_);
  if (request_.hpet_hz) {
    XENOSCOPE_ASSIGN_OR_RETURN(auto registers, OpenHpet());
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<uint32_t> apic_ids, OnlineApicIds());
    XENOSCOPE_ASSIGN_OR_RETURN(
        clock_, HpetClock::Create(std::move(registers), *request_.hpet_hz, apic_ids));
  }
  XENOSCOPE_RETURN_IF_ERROR(lock_->WriteNote(clock_ ? kNoteHpet : kNoteSampling));
  note_written_ = true;
  XENOSCOPE_ASSIGN_OR_RETURN(
      session_, XenoprofSession::Open(*calls_, request_.domains, request_.buffer_samples, ReadTsc));
  for (const EventSpec& spec : request_.events) {
    XENOSCOPE_ASSIGN_OR_RETURN(events_.emplace_back(),
                               ResolvePmuEvent(spec, session_->cpu_type(), request_.clock_hz));
  }
  if (events_.empty()) events_ = {DefaultEvent(session_->cpu_type(), request_.clock_hz)};
  return session_->Program(events_, request_.call_chains ? kMaxCallers : 0);
}

void XenoprofSource::RecoverKilled(const SessionLock& lock) {
  if (lock.stale_note().empty()) return;
  // NMIs end first: to give the counters back under them would crash Xen.
  if (lock.stale_note() == kNoteHpet) {
    if (const auto registers = OpenHpet(); registers.ok()) HpetClock::StopStaleTimers(**registers);
  }
  const absl::StatusOr<std::unique_ptr<XenoprofCalls>> calls =
      OpenXenoprofCalls(XenoprofRole::kInitiator);
  if (!calls.ok()) return;
  XenoprofSession::Recover(**calls);
  lock.WriteNote("").IgnoreError();
}

recording::SourceInfo XenoprofSource::Info() const {
  return {"xenoprof", session_->cpu_type(), static_cast<uint64_t>(request_.drain_interval.count())};
}

std::vector<recording::EventInfo> XenoprofSource::Events() const {
  std::vector<recording::EventInfo> events;
  for (const PmuEvent& event : events_) {
    events.push_back({.name = event.name,
                      .code = event.code,
                      .unit_mask = event.unit_mask,
                      .period = event.period,
                      .clocked_by = "pmu",
                      .modes = ModeSet{event.user, event.kernel, event.hypervisor}});
    if (request_.hpet_hz) {
      events.back().period = request_.clock_hz / *request_.hpet_hz;
      events.back().clocked_by = fmt::format("hpet:{}", *request_.hpet_hz);
      if (clock_->Sent() > 0) events.back().nmis = CountNmis();
    }
  }
  return events;
}

// Counts NMIs. Xen attributes each NMI to all counters, and logs an entry, or loses it, for each
// counter.
recording::NmiCounters XenoprofSource::CountNmis() const {
  recording::NmiCounters nmis;
  nmis.sent = clock_->Sent();
  uint64_t logged = 0;
  uint64_t lost = 0;
  for (const recording::StreamInfo& stream : session_->Streams()) {
    logged += stream.logged.Logged();
    lost += stream.logged.lost;
  }
  nmis.logged = logged / session_->counters();
  nmis.lost = lost / session_->counters();
  nmis.sent = std::max(nmis.sent, nmis.logged + nmis.lost);
  nmis.elsewhere = nmis.sent - nmis.logged - nmis.lost;
  return nmis;
}

Role XenoprofSource::RoleOf(DomainId domain) const {
  if (domain == kDom0) return Role::kInitiator;
  const std::vector<DomainId>& passive = session_->passive();
  const bool is_passive = std::ranges::find(passive, domain) != passive.end();
  return is_passive ? Role::kPassive : Role::kNone;
}

absl::Status XenoprofSource::Start() {
  drain_timer_.Start(steady_clock::now());
  return session_->Start(clock_.get());
}

absl::Status XenoprofSource::Collect(recording::SampleWriter& writer) {
  const steady_clock::time_point begin = steady_clock::now();
  const double fill = session_->Drain(SinkTo(writer));
  drain_timer_.Drained(begin, steady_clock::now(), fill);
  return absl::OkStatus();
}

absl::Status XenoprofSource::OnDomainCreated(const recording::DomainInfo& /*domain*/) {
  return UnimplementedError("xenoprof can add domains only before it starts");
}

absl::Status XenoprofSource::Stop(recording::SampleWriter& writer) {
  return session_->Stop(SinkTo(writer));
}

absl::Status XenoprofSource::Close() {
  if (!note_written_) return absl::OkStatus();
  if (session_) XENOSCOPE_RETURN_IF_ERROR(session_->Close());
  note_written_ = false;
  return lock_->WriteNote("");
}

}  // namespace xenoscope::sampler
