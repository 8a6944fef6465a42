// The counters of a guest's own kernel, which its agent reads for `stat`. They count what the guest
// runs on its vCPUs, not Xen's work for it.
//
// Nothing that the guest says is trusted: the counts of its own vCPUs are what it says that they
// are, and no count of another domain depends on them.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "recording/info.h"
#include "sampler/agent/agent_caller.h"
#include "sampler/perf/perf_counters.h"

namespace xenoscope::sampler {

class GuestCounters {
 public:
  // Connects to the agent of `domain`, which is to count `events` events: `texts` as after
  // `stat -e`. To be called before any other thread runs. Errors: those of AgentCaller::Start;
  // InvalidArgument: more than an agent counts.
  static absl::StatusOr<GuestCounters> Open(const recording::DomainInfo& domain,
                                            std::vector<std::string> texts, size_t events,
                                            const AgentSource::Connect& connect,
                                            const agent::Host& host,
                                            const AgentCaller::Worker& worker = ServeAgentCalls);
  GuestCounters(GuestCounters&&) noexcept = default;
  GuestCounters& operator=(GuestCounters&&) = delete;
  GuestCounters(const GuestCounters&) = delete;
  GuestCounters& operator=(const GuestCounters&) = delete;
  // Says bye.
  ~GuestCounters();

  // Begins to count, from 0. Errors: no agent answers in time, it cannot count, or what it answers
  // cannot be.
  absl::Status Start();
  // Returns what was counted since the last call, or since Start, by event and vCPU. Errors: as
  // those of Start. After an error there are no counts until the next Start.
  absl::StatusOr<std::vector<CounterReading>> Next();

  // Lets the agent know that the recorder is still there: an agent takes one that says nothing for
  // some minutes (agent::kIdleTimeout) for gone.
  void KeepAlive();

  [[nodiscard]] const recording::DomainInfo& domain() const { return caller_->domain(); }
  // Returns by event why the guest cannot count it, or an empty text.
  [[nodiscard]] const std::vector<std::string>& obstacles() const { return obstacles_; }

 private:
  GuestCounters(std::unique_ptr<AgentCaller> caller, std::vector<std::string> texts, size_t events)
      : caller_(std::move(caller)), texts_(std::move(texts)), events_(events) {}

  absl::StatusOr<agent::Counts> Call(const std::vector<std::string>& texts,
                                     std::chrono::milliseconds time);

  std::unique_ptr<AgentCaller> caller_;
  std::vector<std::string> texts_;
  size_t events_;
  std::vector<std::string> obstacles_;
  std::vector<CounterReading> last_;
};

}  // namespace xenoscope::sampler
