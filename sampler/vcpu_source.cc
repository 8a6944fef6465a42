#include "sampler/vcpu_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {

using recording::StreamInfo;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

absl::StatusOr<std::unique_ptr<VcpuSource>> VcpuSource::Open(const VcpuRequest& request,
                                                             std::unique_ptr<VcpuCalls> calls,
                                                             std::function<Tsc()> read_tsc) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<VcpuSource> source(
      new VcpuSource(request, std::move(calls), std::move(read_tsc)));
  if (source->alive_.empty()) {
    return NotFoundError(
        "source vcpu looks at guests, and there is none to look at: start one, or choose another "
        "source");
  }
  return source;
}

VcpuSource::VcpuSource(const VcpuRequest& request, std::unique_ptr<VcpuCalls> calls,
                       std::function<Tsc()> read_tsc)
    : looks_hz_(request.looks_hz),
      seed_(request.seed),
      first_event_(request.first_event),
      clock_hz_(request.clock_hz),
      pcpus_(request.pcpus),
      calls_(std::move(calls)),
      read_tsc_(std::move(read_tsc)),
      random_(request.seed) {
  for (const recording::DomainInfo& domain : request.domains) {
    for (uint32_t vcpu = 0; vcpu < domain.vcpus; ++vcpu) {
      StreamInfo& stream = streams_.emplace_back();
      stream.source = "vcpu";
      stream.vcpu = {domain.id, VcpuId{vcpu}};
      stream.looks.emplace();
      alive_.push_back(alive_.size());
    }
  }
}

recording::SourceInfo VcpuSource::Info() const {
  recording::SourceInfo info;
  info.name = "vcpu";
  info.drain_interval_ns = static_cast<uint64_t>(1e9 / looks_hz_);
  info.seed = seed_;
  return info;
}

std::vector<recording::EventInfo> VcpuSource::Events() const {
  const uint64_t period = Period();
  const std::string clock = fmt::format("vcpu:{:g}", looks_hz_);
  recording::EventInfo running{"vcpu-running", 0, 0, period, clock};
  recording::EventInfo preempted{"vcpu-preempted", 0, 0, period, clock};
  preempted.waiting = true;
  return {std::move(running), std::move(preempted)};
}

uint64_t VcpuSource::Period() const {
  uint64_t looks = 0;
  for (const StreamInfo& stream : streams_) looks += stream.looks->total;
  if (sampled_.Empty() || looks == 0) {
    return static_cast<uint64_t>(static_cast<double>(clock_hz_) / looks_hz_);
  }
  return sampled_.Length() * streams_.size() / looks;
}

recording::Role VcpuSource::RoleOf(DomainId domain) const {
  const bool looked_at = std::ranges::any_of(
      streams_, [domain](const StreamInfo& stream) { return stream.vcpu.domain == domain; });
  return looked_at ? recording::Role::kPassive : recording::Role::kNone;
}

std::vector<std::string> VcpuSource::Notes() const {
  if (pcpus_ != 1) return {};
  return {
      "this host has one pCPU, where no guest runs while dom0 looks at it: samples are of where "
      "guests were preempted (event vcpu-preempted), not of where their time went"};
}

absl::Status VcpuSource::Start() {
  sampled_.begin = read_tsc_();
  due_ = steady_clock::now() + Pause();
  return absl::OkStatus();
}

// Exponential, for the looks at all vCPUs together.
nanoseconds VcpuSource::Pause() {
  const double hz = looks_hz_ * static_cast<double>(std::max<size_t>(alive_.size(), 1));
  std::exponential_distribution<double> seconds(hz);
  return nanoseconds(static_cast<int64_t>(seconds(random_) * 1e9));
}

absl::Status VcpuSource::Collect(recording::SampleWriter& writer) {
  if (!alive_.empty()) {
    std::uniform_int_distribution<size_t> any(0, alive_.size() - 1);
    const auto chosen = alive_.begin() + static_cast<std::ptrdiff_t>(any(random_));
    StreamInfo& stream = streams_[*chosen];
    Look(stream, writer);
    if (stream.looks->gone) alive_.erase(chosen);
  }
  due_ = steady_clock::now() + Pause();
  return absl::OkStatus();
}

void VcpuSource::Look(StreamInfo& stream, recording::SampleWriter& writer) {
  recording::LookCounters& looks = *stream.looks;
  const auto failed = [&looks](int error) {
    ++looks.failed;
    looks.gone = error == -ESRCH;
  };
  ++looks.total;
  VcpuState state;
  if (const int error = calls_->State(stream.vcpu, state); error != 0) return failed(error);
  if (!state.online || (state.blocked && !state.running)) {
    ++looks.blocked;
    return;
  }
  VcpuContext context;
  const Tsc before = read_tsc_();
  const int error = calls_->Context(stream.vcpu, context);
  const Tsc after = read_tsc_();
  if (error != 0) return failed(error);
  ++(state.running ? looks.running : looks.preempted);
  looks.stopped_cycles += after - before;
  looks.longest_stop = std::max(looks.longest_stop, after - before);
  ++(context.mode == Mode::kKernel ? stream.logged.kernel : stream.logged.user);
  ++stream.drained;
  ++stream.kept;
  recording::Entry entry;
  entry.address = context.address;
  entry.mode = static_cast<uint8_t>(context.mode);
  entry.event = static_cast<uint8_t>(first_event_ + (state.running ? kRunning : kPreempted));
  writer.AppendStopped(stream.vcpu, {before, after + 1}, entry);
}

absl::Status VcpuSource::Stop(recording::SampleWriter& /*writer*/) {
  sampled_.end = read_tsc_();
  for (StreamInfo& stream : streams_) stream.complete = true;
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
