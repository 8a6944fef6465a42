#include "sampler/agent/guest_counters.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

// Returns whether `now` is a later reading of the counters that `before` is of.
bool Follows(const std::vector<CounterReading>& before, const std::vector<CounterReading>& now) {
  return std::ranges::equal(before, now, [](const CounterReading& a, const CounterReading& b) {
    return a.event == b.event && a.cpu == b.cpu && a.count <= b.count &&
           a.enabled_ns <= b.enabled_ns && a.running_ns <= b.running_ns;
  });
}

}  // namespace

absl::StatusOr<GuestCounters> GuestCounters::Open(const recording::DomainInfo& domain,
                                                  std::vector<std::string> texts, size_t events,
                                                  const AgentSource::Connect& connect,
                                                  const agent::Host& host,
                                                  const AgentCaller::Worker& worker) {
  const auto is_long = [](const std::string& text) { return text.size() > agent::kMaxText; };
  if (events > agent::kMaxEvents || std::ranges::any_of(texts, is_long)) {
    return InvalidError("agents count {} events at most, with names of {} bytes in each -e",
                        agent::kMaxEvents, agent::kMaxText);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<AgentCaller> caller,
                             AgentCaller::Start(domain, {}, connect, host, worker));
  return GuestCounters(std::move(caller), std::move(texts), events);
}

GuestCounters::~GuestCounters() {
  if (caller_ == nullptr || !caller_->IsOpen()) return;  // moved from, or the guest was given up
  caller_->Call({AgentCall::kClose}, caller_->request().limits.answer).status().IgnoreError();
  caller_->Disconnect();
}

absl::StatusOr<agent::Counts> GuestCounters::Call(const std::vector<std::string>& texts,
                                                  std::chrono::milliseconds time) {
  AgentCallMessage message{AgentCall::kCount};
  message.events = texts;
  XENOSCOPE_ASSIGN_OR_RETURN(AgentReply reply, caller_->Call(message, time));
  XENOSCOPE_RETURN_IF_ERROR(reply.status);
  if (reply.counts.obstacles.size() != events_) {
    return InvalidError("it counts {} events, and was asked for {}", reply.counts.obstacles.size(),
                        events_);
  }
  return std::move(reply.counts);
}

absl::Status GuestCounters::Start() {
  const agent::Limits& limits = caller_->request().limits;
  XENOSCOPE_ASSIGN_OR_RETURN(agent::Counts counts,
                             Call(texts_, limits.hello + limits.ready + limits.answer));
  obstacles_ = std::move(counts.obstacles);
  last_ = std::move(counts.readings);
  return absl::OkStatus();
}

void GuestCounters::KeepAlive() {
  // The next reading has the error, if there is one.
  Call({}, caller_->request().limits.answer).status().IgnoreError();
}

absl::StatusOr<std::vector<CounterReading>> GuestCounters::Next() {
  XENOSCOPE_ASSIGN_OR_RETURN(agent::Counts counts, Call({}, caller_->request().limits.answer));
  if (!Follows(last_, counts.readings)) {
    return InvalidError("its counts are smaller than before, or of other vCPUs");
  }
  std::vector<CounterReading> since = counts.readings;
  for (size_t i = 0; i < since.size(); ++i) {
    since[i].count -= last_[i].count;
    since[i].enabled_ns -= last_[i].enabled_ns;
    since[i].running_ns -= last_[i].running_ns;
  }
  last_ = std::move(counts.readings);
  return since;
}

}  // namespace xenoscope::sampler
