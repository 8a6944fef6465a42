#include "sampler/perf/perf_counters.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

// Lets the attributes count, and take no samples.
void MakeCounting(CounterScope scope, perf_event_attr& attributes) {
  attributes.size = sizeof attributes;
  attributes.sample_period = 0;
  attributes.freq = 0;
  attributes.exclude_idle = 0;
  attributes.disabled = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  if (scope == CounterScope::kCpus) return;
  attributes.inherit = 1;
  attributes.enable_on_exec = 1;
}

absl::Status CheckModes(PerfCalls& calls, const PerfEvent& event) {
  const bool by_rings = event.attributes.type != PERF_TYPE_SOFTWARE &&
                        (calls.IsInPvDomain() || !calls.VpmuMode().empty());
  if (!by_rings || event.modes == kAllModes) return absl::OkStatus();
  return InvalidError(
      "event {}: in PV domains the counters do not tell user and kernel mode apart; leave out the "
      "letters of modes, or use --source xenoprof",
      event.name);
}

}  // namespace

absl::StatusOr<PerfCounters> PerfCounters::Open(std::span<const EventSpec> events,
                                                CounterScope scope,
                                                std::unique_ptr<PerfCalls> calls) {
  PerfCounters counters(scope, std::move(calls));
  for (const EventSpec& spec : events) {
    XENOSCOPE_ASSIGN_OR_RETURN(PerfEvent event, ResolvePerfEvent(spec));
    XENOSCOPE_RETURN_IF_ERROR(CheckModes(*counters.calls_, event));
    MakeCounting(scope, event.attributes);
    counters.events_.push_back({std::move(event), "", false});
  }
  std::vector<std::optional<uint32_t>> cpus = {std::nullopt};
  if (scope == CounterScope::kCpus) {
    const std::vector<uint32_t> online = counters.calls_->OnlineCpus();
    cpus.assign(online.begin(), online.end());
  }
  for (size_t event = 0; event < events.size(); ++event) {
    for (const std::optional<uint32_t>& cpu : cpus) {
      XENOSCOPE_RETURN_IF_ERROR(counters.OpenEvent(events, event, cpu));
    }
  }
  return counters;
}

PerfCounters::~PerfCounters() {
  if (calls_ == nullptr) return;  // moved from
  for (const Counter& counter : counters_) calls_->Close(counter.fd);
}

int PerfCounters::OpenCounter(size_t event, std::optional<uint32_t> cpu, int leader) {
  const perf_event_attr& attributes = events_[event].event.attributes;
  if (cpu) return calls_->Open(attributes, /*pid=*/-1, static_cast<int>(*cpu), leader);
  return calls_->Open(attributes, /*pid=*/0, /*cpu=*/-1, leader);
}

absl::Status PerfCounters::OpenEvent(std::span<const EventSpec> specs, size_t event,
                                     std::optional<uint32_t> cpu) {
  CountedEvent& counted = events_[event];
  if (!counted.obstacle.empty()) return absl::OkStatus();
  int leader = PerfCalls::kNoLeader;
  if (specs[event].group) {
    const auto first = std::ranges::find(specs, specs[event].group, &EventSpec::group);
    leader = FileOf(static_cast<size_t>(first - specs.begin()), cpu);
  }
  int fd = OpenCounter(event, cpu, leader);
  const bool denied = fd == -EACCES || fd == -EPERM;
  perf_event_attr& attributes = counted.event.attributes;
  if (denied && !cpu && attributes.exclude_kernel == 0 && attributes.exclude_user == 0) {
    // As perf does: a user may always count what programs of his own do in user mode.
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    counted.user_only = true;
    fd = OpenCounter(event, cpu, leader);
  }
  if (fd == -ENODEV && cpu) return absl::OkStatus();  // it has gone offline just now
  if (fd < 0) {
    const absl::Status status = PerfError(*calls_, -fd, counted.event.name.c_str());
    if (!absl::IsUnimplemented(status) || fd == -ENOSYS) return status;
    Drop(event, std::string(Message(status)));
    return absl::OkStatus();
  }
  counters_.push_back({event, cpu, fd});
  return absl::OkStatus();
}

int PerfCounters::FileOf(size_t event, std::optional<uint32_t> cpu) const {
  const auto found = std::ranges::find_if(counters_, [&](const Counter& counter) {
    return counter.event == event && counter.cpu == cpu;
  });
  return found == counters_.end() ? PerfCalls::kNoLeader : found->fd;
}

void PerfCounters::Drop(size_t event, std::string why) {
  events_[event].obstacle = std::move(why);
  std::erase_if(counters_, [&](const Counter& counter) {
    if (counter.event == event) calls_->Close(counter.fd);
    return counter.event == event;
  });
}

absl::Status PerfCounters::Enable(bool on) {
  if (scope_ == CounterScope::kChildren) return absl::OkStatus();
  for (const Counter& counter : counters_) {
    if (const int error = calls_->Enable(counter.fd, on); error < 0) {
      return PerfError(*calls_, -error, events_[counter.event].event.name.c_str());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CounterReading>> PerfCounters::Read() {
  std::vector<CounterReading> readings;
  readings.reserve(counters_.size());
  for (const Counter& counter : counters_) {
    PerfTimedCount count;
    if (const int error = calls_->ReadTimed(counter.fd, count); error < 0) {
      return PerfError(*calls_, -error, events_[counter.event].event.name.c_str());
    }
    readings.push_back(
        {counter.event, counter.cpu, count.value, count.enabled_ns, count.running_ns});
  }
  return readings;
}

}  // namespace xenoscope::sampler
