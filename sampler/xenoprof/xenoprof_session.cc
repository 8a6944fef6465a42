#include "sampler/xenoprof/xenoprof_session.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

absl::Status ReserveError(int error) {
  if (error == -EBUSY) {
    return PreconditionError(
        "Xen's NMI watchdog holds the performance counters: boot Xen without watchdog");
  }
  return ErrnoError(-error, "xenoprof cannot reserve the performance counters");
}

absl::Status DomainError(DomainId domain, int error) {
  switch (-error) {
    case EINVAL:
    case ESRCH:
      return NotFoundError("there is no domain {}: `xl list` lists all domains", domain.value);
    case EBUSY:
      return PreconditionError(
          "its sample buffers are in use, by the domain itself or by its agent after a killed "
          "recording; record with --active and --agent-source xenoprof to free them");
    default:
      return ErrnoError(-error, "cannot sample domain {}", domain.value);
  }
}

}  // namespace

// Ends a session in any state; operations that have nothing to undo fail. Domains leave the list
// one by one, so that each is released. When all others are off it, dom0 can be put on it again and
// take its own buffers back, which only a domain on the list can do.
int XenoprofSession::ReleaseXenoprof(XenoprofCalls& calls) {
  calls.Call(XenoprofOp::kReleaseCounters);
  calls.Call(XenoprofOp::kResetPassiveList);
  calls.Call(XenoprofOp::kResetActiveList);
  uint16_t self = kDom0.value;
  calls.CallWith(XenoprofOp::kSetActive, self);
  calls.Call(XenoprofOp::kDisableVirq);
  calls.Call(XenoprofOp::kResetActiveList);
  return calls.Call(XenoprofOp::kShutdown);
}

void XenoprofSession::Recover(XenoprofCalls& calls) {
  calls.Call(XenoprofOp::kStop);
  ReleaseXenoprof(calls);
}

absl::StatusOr<std::unique_ptr<XenoprofSession>> XenoprofSession::Open(
    XenoprofCalls& calls, const Domains& domains, uint32_t samples, std::function<Tsc()> read_tsc) {
  if (domains.passive.size() > kMaxDomains || domains.active.size() >= kMaxDomains) {
    return InvalidError(
        "{} domains are too many: xenoprof samples up to {} and dom0; select them with --passive",
        domains.passive.size() + domains.active.size(), kMaxDomains);
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<XenoprofSession> session(new XenoprofSession(calls, std::move(read_tsc)));
  XENOSCOPE_RETURN_IF_ERROR(session->Initialize(domains, samples));
  return session;
}

XenoprofSession::XenoprofSession(XenoprofCalls& calls, std::function<Tsc()> read_tsc)
    : calls_(calls), read_tsc_(read_tsc), buffers_(calls, std::move(read_tsc)) {}

XenoprofSession::~XenoprofSession() { Close().IgnoreError(); }

absl::StatusOr<std::string> XenoprofSession::Probe(XenoprofCalls& calls) {
  XenoprofSession session(calls, [] { return Tsc{}; });
  XENOSCOPE_RETURN_IF_ERROR(session.BecomeInitiator());
  calls.Call(XenoprofOp::kShutdown);
  session.state_ = State::kClosed;
  return session.cpu_.type;
}

absl::Status XenoprofSession::BecomeInitiator() {
  absl::StatusOr<XenoprofCpu> cpu = InitXenoprof(calls_);
  if (cpu.ok() && !cpu->is_primary) {
    cpu = PermissionError("this domain may not profile others: record in dom0");
  }
  if (!cpu.ok()) {
    state_ = State::kClosed;  // there is nothing to give back
    return cpu.status();
  }
  cpu_ = *std::move(cpu);
  return absl::OkStatus();
}

absl::Status XenoprofSession::Initialize(const Domains& domains, uint32_t samples) {
  XENOSCOPE_RETURN_IF_ERROR(BecomeInitiator());
  XENOSCOPE_RETURN_IF_ERROR(buffers_.MapOwn(kDom0, samples));
  XENOSCOPE_RETURN_IF_ERROR(EnlistActive(domains));
  calls_.Call(XenoprofOp::kResetPassiveList);
  for (const DomainId domain : domains.passive) {
    absl::Status added = AddPassive(domain, samples);
    if (!added.ok() && !absl::IsFailedPrecondition(added)) return added;
    if (!added.ok()) left_out_.push_back({domain, added});
  }
  for (const auto& [domain, reason] : refused_) {
    if (const absl::Status added = AddPassive(domain, samples); !added.ok()) {
      left_out_.push_back({domain, added});
    }
  }
  return absl::OkStatus();
}

// Lets the active domains take part. Xen starts when as many domains have taken part as are on its
// list, and removes none from it: when one does not come, or is to be listed again, a new list is
// made, and all take part again.
absl::Status XenoprofSession::EnlistActive(const Domains& domains) {
  active_ = domains.active;
  std::set<DomainId> asked_again;
  while (true) {
    calls_.Call(XenoprofOp::kResetActiveList);
    uint16_t self = kDom0.value;
    if (const int error = calls_.CallWith(XenoprofOp::kSetActive, self); error < 0) {
      return ErrnoError(-error, "cannot sample dom0");
    }
    std::vector<DomainId> taken;
    bool all = true;
    for (const DomainId domain : active_) {
      const absl::StatusOr<bool> again = Enlist(domain, domains.enlist);
      const bool in = again.ok() && !*again;
      all = all && in;
      if (in || (again.ok() && asked_again.insert(domain).second)) {
        taken.push_back(domain);
      } else {
        refused_.push_back({domain, again.ok()
                                        ? InternalError("it asks to be listed again and again")
                                        : again.status()});
      }
    }
    active_ = std::move(taken);
    if (all) return absl::OkStatus();
  }
}

absl::StatusOr<bool> XenoprofSession::Enlist(
    DomainId domain, const std::function<absl::StatusOr<bool>(DomainId)>& enlist) {
  uint16_t id = domain.value;
  if (const int error = calls_.CallWith(XenoprofOp::kSetActive, id); error < 0) {
    return DomainError(domain, error);
  }
  return enlist(domain);
}

absl::Status XenoprofSession::AddPassive(DomainId domain, uint32_t samples) {
  XenoprofPassive argument;
  argument.domain_id = domain.value;
  argument.max_samples = static_cast<int32_t>(samples);
  if (const int error = calls_.CallWith(XenoprofOp::kSetPassive, argument); error < 0) {
    return DomainError(domain, error);
  }
  passive_.push_back(domain);
  return buffers_.Map(domain, argument.nbuf, argument.bufsize, argument.buf_gmaddr);
}

// Sets the number of callers, even 0, as Xen keeps an earlier session's. Xen reads an unsigned
// long.
absl::Status XenoprofSession::SetBacktrace(uint32_t callers) {
  uint64_t depth = callers;
  const int error = calls_.CallWith(XenoprofOp::kSetBacktrace, depth);
  if (error >= 0 || callers == 0) return absl::OkStatus();
  if (error == -ENOSYS || error == -EINVAL) {
    return UnimplementedError("this Xen does not support call chains: record without -g");
  }
  return ErrnoError(-error, "xenoprof refuses call chains");
}

absl::Status XenoprofSession::Program(std::span<const PmuEvent> events, uint32_t callers) {
  if (state_ != State::kInitialized) return InternalError("xenoprof programmed out of order");
  XENOSCOPE_RETURN_IF_ERROR(SetBacktrace(callers));
  if (events.size() > cpu_.counters) {
    return InvalidError("{} events are too many for {} counters: give fewer -e", events.size(),
                        cpu_.counters);
  }
  if (const int error = calls_.Call(XenoprofOp::kReserveCounters); error < 0)
    return ReserveError(error);
  state_ = State::kReady;  // in respect of what has to be given back
  for (uint32_t i = 0; i < cpu_.counters; ++i) {
    XenoprofCounter counter;
    counter.ind = i;
    if (i < events.size()) {
      counter.count = events[i].period;
      counter.enabled = 1;
      counter.event = events[i].code;
      counter.unit_mask = events[i].unit_mask;
      // A PV guest's kernel runs in ring 3 and Xen in ring 0, as an HVM guest's kernel does: the
      // samples' modes show what was not asked for.
      counter.user = events[i].user || events[i].kernel ? 1 : 0;
      counter.hypervisor = counter.kernel = events[i].kernel || events[i].hypervisor ? 1 : 0;
    }
    if (const int error = calls_.CallWith(XenoprofOp::kCounter, counter); error < 0) {
      return ErrnoError(-error, "xenoprof refuses counter {}", i);
    }
  }
  if (const int error = calls_.Call(XenoprofOp::kSetupEvents); error < 0) {
    return ErrnoError(-error, "xenoprof refuses the events");
  }
  buffers_.SetEvents(events, cpu_.counters);
  return absl::OkStatus();
}

absl::Status XenoprofSession::Start(SamplingClock* clock) {
  if (state_ != State::kReady) return InternalError("xenoprof started out of order");
  const Tsc started = read_tsc_();
  buffers_.Begin(started);
  if (const int error = calls_.Call(XenoprofOp::kEnableVirq); error < 0) {
    return ErrnoError(-error, "xenoprof does not take up sampling");
  }
  if (const int error = calls_.Call(XenoprofOp::kStart); error < 0) {
    if (error == -EPERM && !active_.empty()) {
      return PermissionError(
          "an active domain has taken part twice, or left again: record without --agent-source "
          "xenoprof");
    }
    return ErrnoError(-error, "xenoprof does not start sampling");
  }
  state_ = State::kProfiling;
  sampled_.begin = started;
  clock_ = clock;
  return clock_ == nullptr ? absl::OkStatus() : clock_->Start();
}

double XenoprofSession::Drain(const Sink& sink) { return buffers_.Drain(sink); }

absl::Status XenoprofSession::Stop(const Sink& sink) {
  if (state_ != State::kProfiling) return InternalError("xenoprof stopped out of order");
  if (clock_ != nullptr) clock_->Stop();
  const int error = calls_.Call(XenoprofOp::kStop);
  sampled_.end = read_tsc_();
  if (error < 0) return ErrnoError(-error, "xenoprof does not stop sampling");
  state_ = State::kStopped;
  buffers_.End(sink);
  return absl::OkStatus();
}

absl::Status XenoprofSession::Close() {
  if (state_ == State::kClosed) return absl::OkStatus();
  absl::Status status;
  if (state_ == State::kProfiling) {
    status = Stop([](const XenoprofBuffers::Drained&) {});
  }
  buffers_.Unmap();
  if (const int error = ReleaseXenoprof(calls_); error < 0 && status.ok()) {
    status = ErrnoError(-error, "xenoprof does not end");
  }
  state_ = State::kClosed;
  return status;
}

}  // namespace xenoscope::sampler
