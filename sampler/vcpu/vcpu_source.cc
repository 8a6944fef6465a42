#include "sampler/vcpu/vcpu_source.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"

namespace xenoscope::sampler {

using recording::StreamInfo;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

// Limit of the time that a vCPU ran since its stop; after more its stack has changed.
constexpr nanoseconds kMaxRunSinceStop = std::chrono::microseconds(200);
// Limit of the time in which files of programs are searched for: a part of the time since sampling
// began, and this many seconds more.
constexpr double kMaxSearchShare = 0.1;
constexpr double kMaxSearchSeconds = 0.2;

}  // namespace

absl::StatusOr<std::unique_ptr<VcpuSource>> VcpuSource::Open(const VcpuRequest& request,
                                                             std::unique_ptr<VcpuCalls> calls,
                                                             std::unique_ptr<GuestMemory> memory,
                                                             std::function<Tsc()> read_tsc) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<VcpuSource> source(
      new VcpuSource(request, std::move(calls), std::move(memory), std::move(read_tsc)));
  if (source->alive_.empty()) {
    return NotFoundError(
        "source vcpu samples guests, and there are none: start one, or choose another source");
  }
  return source;
}

VcpuSource::VcpuSource(const VcpuRequest& request, std::unique_ptr<VcpuCalls> calls,
                       std::unique_ptr<GuestMemory> memory, std::function<Tsc()> read_tsc)
    : poll_hz_(request.poll_hz),
      seed_(request.seed),
      first_event_(request.first_event),
      clock_hz_(request.clock_hz),
      pcpus_(request.pcpus),
      calls_(std::move(calls)),
      read_tsc_(std::move(read_tsc)),
      random_(request.seed) {
  if (memory) {
    frames_.emplace(std::move(memory));
    programs_.emplace(*frames_);
  }
  stack_info_.piece_bytes = GuestStack::kMaxPieceBytes;
  for (const recording::DomainInfo& domain : request.domains) AddVcpus(domain, Tsc{});
}

void VcpuSource::AddVcpus(const recording::DomainInfo& domain, Tsc since) {
  for (uint32_t vcpu = 0; vcpu < domain.vcpus; ++vcpu) {
    alive_.push_back(streams_.size());
    StreamInfo& stream = streams_.emplace_back();
    stream.source = "vcpu";
    stream.vcpu = {domain.id, VcpuId{vcpu}};
    stream.polls.emplace();
    polled_ranges_.push_back({since, since});
  }
}

absl::Status VcpuSource::OnDomainCreated(const recording::DomainInfo& domain) {
  AddVcpus(domain, read_tsc_());
  return absl::OkStatus();
}

recording::SourceInfo VcpuSource::Info() const {
  recording::SourceInfo info;
  info.name = "vcpu";
  info.drain_interval_ns = static_cast<uint64_t>(1e9 / poll_hz_);
  info.seed = seed_;
  if (frames_) info.stacks = stack_info_;
  return info;
}

std::vector<recording::EventInfo> VcpuSource::Events() const {
  const uint64_t period = Period();
  const std::string clock = fmt::format("vcpu:{:g}", poll_hz_);
  recording::EventInfo running{.name = "vcpu-running", .period = period, .clocked_by = clock};
  recording::EventInfo preempted{.name = "vcpu-preempted", .period = period, .clocked_by = clock};
  preempted.waiting = true;
  running.modes = preempted.modes = kAllModes;
  return {std::move(running), std::move(preempted)};
}

uint64_t VcpuSource::Period() const {
  uint64_t polls = 0;
  for (const StreamInfo& stream : streams_) polls += stream.polls->total;
  if (sampled_.Empty() || polls == 0) {
    return static_cast<uint64_t>(static_cast<double>(clock_hz_) / poll_hz_);
  }
  Cycles lived = 0;
  for (const TscRange& life : polled_ranges_) lived += life.Length();
  return lived / polls;
}

recording::Role VcpuSource::RoleOf(DomainId domain) const {
  const bool looked_at = std::ranges::any_of(
      streams_, [domain](const StreamInfo& stream) { return stream.vcpu.domain == domain; });
  return looked_at ? recording::Role::kPassive : recording::Role::kNone;
}

std::vector<std::string> VcpuSource::Notes() const {
  if (pcpus_ != 1) return {};
  return {
      "this host has one pCPU, so no guest runs while dom0 samples: samples show where guests were "
      "preempted (event vcpu-preempted), not where their time went"};
}

absl::Status VcpuSource::Start() {
  sampled_.begin = read_tsc_();
  for (TscRange& life : polled_ranges_) life = {sampled_.begin, sampled_.begin};
  due_ = steady_clock::now() + RandomInterval();
  return absl::OkStatus();
}

// Returns an exponential interval, for the polls of all vCPUs together.
nanoseconds VcpuSource::RandomInterval() {
  const double hz = poll_hz_ * static_cast<double>(std::max<size_t>(alive_.size(), 1));
  std::exponential_distribution<double> seconds(hz);
  return nanoseconds(static_cast<int64_t>(seconds(random_) * 1e9));
}

absl::Status VcpuSource::Collect(recording::SampleWriter& writer) {
  if (frames_ && frames_->Expire(steady_clock::now())) {
    programs_->Forget();
    LeaveDying();
  }
  stack_rate_.Refill(steady_clock::now());
  if (!alive_.empty()) {
    std::uniform_int_distribution<size_t> any(0, alive_.size() - 1);
    const size_t chosen = alive_[any(random_)];
    Poll(streams_[chosen], writer);
    if (streams_[chosen].polls->gone) Leave(chosen);
  }
  due_ = steady_clock::now() + RandomInterval();
  return absl::OkStatus();
}

void VcpuSource::Leave(size_t stream) {
  streams_[stream].polls->gone = true;
  polled_ranges_[stream].end = read_tsc_();
  std::erase(alive_, stream);
  if (frames_) frames_->Drop(streams_[stream].vcpu.domain);
}

void VcpuSource::LeaveDying() {
  absl::flat_hash_map<DomainId, bool> is_dying;
  const std::vector<size_t> alive = alive_;
  for (const size_t stream : alive) {
    const DomainId domain = streams_[stream].vcpu.domain;
    const auto [known, is_new] = is_dying.try_emplace(domain);
    if (is_new) {
      DomainState state;
      known->second = calls_->Domain(domain, state) == 0 && state.dying;
    }
    if (known->second) Leave(stream);
  }
}

void VcpuSource::Poll(StreamInfo& stream, recording::SampleWriter& writer) {
  recording::PollCounters& polls = *stream.polls;
  const auto failed = [&polls](int error) {
    ++polls.failed;
    polls.gone = error == -ESRCH;
  };
  ++polls.total;
  VcpuState state;
  if (const int error = calls_->State(stream.vcpu, state); error != 0) return failed(error);
  if (!state.online || (state.blocked && !state.running)) {
    ++polls.blocked;
    return;
  }
  VcpuContext context;
  const Tsc before = read_tsc_();
  const int error = calls_->Context(stream.vcpu, context);
  const Tsc after = read_tsc_();
  if (error != 0) return failed(error);
  ++(state.running ? polls.running : polls.preempted);
  polls.stopped_cycles += after - before;
  polls.longest_stop = std::max(polls.longest_stop, after - before);
  AddSample(stream, {before, after + 1}, state, context, writer);
}

void VcpuSource::AddSample(StreamInfo& stream, TscRange when, const VcpuState& state,
                           const VcpuContext& context, recording::SampleWriter& writer) {
  ++(context.mode == Mode::kKernel ? stream.logged.kernel : stream.logged.user);
  ++stream.drained;
  ++stream.kept;
  const auto mode = static_cast<uint8_t>(context.mode);
  const auto number = static_cast<uint8_t>(first_event_ + (state.running ? kRunning : kPreempted));
  if (!frames_) {
    recording::Entry entry;
    entry.address = context.address;
    entry.mode = mode;
    entry.event = number;
    return writer.AppendStopped(stream.vcpu, when, entry);
  }
  ReadStack(stream, state, when.begin, context);
  recording::TimedEntry entry;
  entry.address = context.address;
  entry.mode = mode;
  entry.event = number;
  entry.vcpu = stream.vcpu.vcpu.value;
  entry.begin = when.begin.value;
  entry.end = when.end.value;
  entry.space = FindPrograms(stream.vcpu.domain, when.begin, context);
  writer.Append(stream.vcpu.domain, found_programs_);
  AddWithStack(stream.vcpu.domain, entry, context, writer);
}

uint16_t VcpuSource::FindPrograms(DomainId domain, Tsc when, const VcpuContext& context) {
  found_programs_.Clear();
  const Tsc begin = read_tsc_();
  const auto seconds = [this](Cycles cycles) {
    return static_cast<double>(cycles) / static_cast<double>(clock_hz_);
  };
  const bool search = seconds(programs_took_) <=
                      kMaxSearchSeconds + kMaxSearchShare * seconds(begin - sampled_.begin);
  const uint16_t space =
      programs_->Find(domain, context, stacks_.words, when, search, found_programs_);
  programs_took_ += read_tsc_() - begin;
  return space;
}

void VcpuSource::ReadStack(StreamInfo& stream, const VcpuState& state, Tsc stopping,
                           const VcpuContext& context) {
  GuestStack stack(*frames_);
  stack.Read(stream.vcpu.domain, context, stacks_);
  if (HasRunOn(stream.vcpu, state, stopping)) stacks_.Keep(0);
  stack.ReadOuter(stacks_);
  if (stacks_.pieces.size() > 1 && HasRunOn(stream.vcpu, state, stopping)) stacks_.Keep(1);
  const bool whole = stack.Unwind(stream.vcpu.domain, context, stacks_, callers_);
  const bool is_old = HasRunOn(stream.vcpu, state, stopping);
  if (is_old) callers_.clear();
  if (is_old || !whole) ++stream.polls->cut_chains;
  stream.polls->callers += callers_.size();
}

bool VcpuSource::HasRunOn(VcpuRef vcpu, const VcpuState& state, Tsc stopping) {
  // It cannot have run for longer than time has passed. Its own time also has what it ran between
  // `state` and the stop: for long where dom0 lost its pCPU there.
  const double seconds =
      static_cast<double>(read_tsc_() - stopping) / static_cast<double>(clock_hz_);
  if (std::chrono::duration<double>(seconds) <= kMaxRunSinceStop) return false;
  VcpuState now;
  return calls_->State(vcpu, now) != 0 || nanoseconds(now.ran_ns - state.ran_ns) > kMaxRunSinceStop;
}

void VcpuSource::AddWithStack(DomainId domain, recording::TimedEntry entry,
                              const VcpuContext& context, recording::SampleWriter& writer) {
  const bool in_kernel = context.mode == Mode::kKernel;
  (in_kernel ? entry.kernel_callers : entry.user_callers) = static_cast<uint16_t>(callers_.size());
  chunk_.Clear();
  const recording::StackEntry stack = AddStacks(context);
  chunk_.Add(entry, stack, callers_, outer_);
  const uint64_t stored = writer.AppendStopped(domain, chunk_, stack_block_);
  stack_info_.stored_bytes += stored;
  stack_rate_.Spend(stored);
}

recording::StackEntry VcpuSource::AddStacks(const VcpuContext& context) {
  stack_block_.Clear();
  outer_.clear();
  if (stacks_.empty()) return {};
  if (!stack_rate_.HasRoom()) {
    ++stack_info_.left_out;
    return {};
  }
  const auto bytes_of = [this](const StackPieces::Piece& piece) {
    return std::as_bytes(stacks_.WordsOf(piece));
  };
  const recording::StackEntry innermost =
      stack_block_.Add({context.registers, bytes_of(stacks_.pieces.front())});
  for (size_t i = 1; i < stacks_.pieces.size(); ++i) {
    const StackPieces::Piece& piece = stacks_.pieces[i];
    outer_.push_back(stack_block_.AddOuter(piece.begin, bytes_of(piece)));
  }
  ++stack_info_.pieces;
  stack_info_.raw_bytes += stack_block_.size();
  return innermost;
}

absl::Status VcpuSource::Stop(recording::SampleWriter& /*writer*/) {
  sampled_.end = read_tsc_();
  for (const size_t stream : alive_) polled_ranges_[stream].end = sampled_.end;
  if (frames_) frames_->Clear();
  for (StreamInfo& stream : streams_) stream.complete = true;
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
