// Fuzzes a session with a guest's agent that sends anything at any time. There is no crash, and no
// call takes longer than its limits, by a clock that only the channel and readings of it advance.
// An input is the agent's actions, one after the other:
//   byte 0, bits 0..3: kind of the action; bits 4..7: how many of the next units of time it waits
//   byte 1: length; then so many bytes
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "recording/sample_writer.h"
#include "recording/stack_block.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/agent/agent_session.h"
#include "sampler/agent/channel.h"

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using xenoscope::Bytes;
using xenoscope::Tsc;
namespace agent = xenoscope::sampler::agent;

nanoseconds fake_time{0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

steady_clock::time_point Now() {
  fake_time += std::chrono::microseconds(1);
  return steady_clock::time_point(fake_time);
}

class FakeAgent final : public xenoscope::sampler::Channel {
 public:
  explicit FakeAgent(Bytes script) : script_(script) {}

  absl::StatusOr<size_t> Send(Bytes bytes) override {
    if (gone_) return absl::UnavailableError("gone");
    if (deaf_) return size_t{0};
    heard_.Add(bytes);
    while (true) {
      const auto message = heard_.Next();
      if (!message.ok()) std::abort();  // what the recorder sends is always valid
      if (!*message) break;
      if (const auto* ping = std::get_if<agent::Ping>(&**message)) asked_ = ping->number;
      if (const auto* want = std::get_if<agent::Want>(&**message)) wanted_ = want->kind;
    }
    return bytes.size();
  }

  absl::StatusOr<size_t> Receive(std::span<std::byte> into) override {
    if (fake_time < silent_until_) return size_t{0};
    if (came_ == coming_.size()) {
      coming_.clear();
      came_ = 0;
      if (!gone_) Act();
    }
    const size_t size = std::min({into.size(), coming_.size() - came_, most_at_once_});
    if (size == 0 && gone_) return absl::UnavailableError("gone");
    std::copy_n(coming_.begin() + static_cast<std::ptrdiff_t>(came_), size, into.begin());
    came_ += size;
    return size;
  }

  void Wait(bool /*to_send*/, steady_clock::time_point until, int /*other*/) override {
    nanoseconds to = until.time_since_epoch();
    if (fake_time < silent_until_) to = std::min(to, silent_until_);
    fake_time = std::max(fake_time, to);
  }

 private:
  void Put(const std::vector<std::byte>& bytes) {
    coming_.insert(coming_.end(), bytes.begin(), bytes.end());
  }
  Bytes Take(size_t size) {
    const Bytes taken = script_.first(std::min(size, script_.size()));
    script_ = script_.subspan(taken.size());
    return taken;
  }

  static agent::Counts CountsOf(Bytes bytes) {
    agent::Counts counts;
    counts.last = bytes.size() % 3 != 0;
    counts.obstacles.resize(bytes.size() % 4);
    for (const std::byte byte : bytes) {
      const auto value = static_cast<uint32_t>(byte);
      counts.readings.push_back({value % 4, value / 4 % 4, value, value, value});
    }
    return counts;
  }

  // Chunks with right checksums: pages and formats of a kernel's trace, of any vCPU.
  static std::vector<std::byte> TraceOf(Bytes bytes) {
    auto writer = xenoscope::recording::SampleWriter::InMemory();
    for (const std::byte vcpu : bytes) {
      writer.AppendTracePages(
          {xenoscope::DomainId{0}, xenoscope::VcpuId{static_cast<uint32_t>(vcpu)}},
          {Tsc{0}, Tsc{static_cast<uint64_t>(vcpu)}, Tsc{~uint64_t{0}}},
          static_cast<uint32_t>(bytes.size()), bytes);
    }
    writer.AppendTraceFormats(xenoscope::DomainId{0}, xenoscope::AsText(bytes));
    return writer.Take();
  }

  // Chunks with right checksums: a block of the input's bytes, and samples of which each two bytes
  // say where their stack is.
  static std::vector<std::byte> ChunksOf(Bytes bytes) {
    namespace recording = xenoscope::recording;
    recording::StackBlock block;
    block.Add({{}, bytes});
    recording::TimedChunk chunk;
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
      recording::TimedEntry entry;
      entry.pid = entry.tid = 1;
      entry.begin = static_cast<uint64_t>(fake_time.count()) + 77;  // as pongs have it
      entry.end = entry.begin + 1;
      chunk.Add(entry, {static_cast<uint32_t>(bytes[i]), 4 * static_cast<uint32_t>(bytes[i + 1])},
                {});
    }
    auto writer = recording::SampleWriter::InMemory();
    writer.Append(xenoscope::DomainId{0}, chunk, block);
    return writer.Take();
  }

  // Waits before the next action, and then does it: it answers what was asked meanwhile.
  void Act() {
    if (const auto action = std::exchange(next_, std::nullopt)) {
      return Say(action->kind, action->bytes);
    }
    if (script_.size() < 2) {
      gone_ = leaves_;
      return;
    }
    const auto first = static_cast<uint8_t>(script_[0]);
    const auto length = static_cast<uint8_t>(script_[1]);
    script_ = script_.subspan(2);
    constexpr unsigned kKinds = 16;
    constexpr std::array kUnits = {milliseconds(0),   milliseconds(1),    milliseconds(100),
                                   milliseconds(999), milliseconds(7000), milliseconds(9990)};
    silent_until_ = fake_time + kUnits[first / kKinds % kUnits.size()];
    next_ = {first % kKinds, Take(length)};
    if (fake_time >= silent_until_) Act();
  }

  // Answers as an agent should, where it can; else what the input has.
  void Say(unsigned action, Bytes bytes) {
    switch (action) {
      case 0:
        return Put(agent::Encode(agent::Hello{.major = agent::kMajor,
                                              .minor = agent::kMinor,
                                              .vcpus = 2,
                                              .tsc_hz = 1'000'000'000,
                                              .tsc_native = true,
                                              .program = "made up",
                                              .kernel = "6.1"}));
      case 1:
        return Put(agent::Encode(
            agent::Pong{asked_, static_cast<uint64_t>(fake_time.count()) + 77 + bytes.size()}));
      case 2:
        return Put(agent::Encode(
            agent::Prepared{R"({"format":{"major":1},"sources":[{"name":"perf","stacks":{}}],)"
                            R"("kernel_traces":[{"source":"ftrace","domain":0,"vcpu":0}],)"
                            R"("events":[{"name":"cpu-clock","period":1000}]})"}));
      case 3:
        return Put(
            agent::Encode(agent::FilePart{wanted_, bytes.empty(), {bytes.begin(), bytes.end()}}));
      case 4:
        return Put(agent::Encode(agent::Account{std::string(xenoscope::AsText(bytes)), true}));
      case 5:
        return Put(agent::Encode(agent::Samples{{bytes.begin(), bytes.end()}}));
      case 6:
        return Put(agent::Encode(agent::Enlisted{bytes.size() % 2 == 1}));
      case 7:
        return Put(agent::Encode(agent::Failed{std::string(xenoscope::AsText(bytes))}));
      case 8:
        most_at_once_ = bytes.size() + 1;
        return;
      case 9:
        deaf_ = !deaf_;
        return;
      case 10:
        leaves_ = true;
        return;
      case 11:
        return Put({bytes.begin(), bytes.end()});
      case 12:  // the same message a thousand times
        for (int i = 0; i < 1000; ++i)
          Put(agent::Encode(agent::Samples{{bytes.begin(), bytes.end()}}));
        return;
      case 14:  // samples with stacks that are where the input says
        return Put(agent::Encode(agent::Samples{ChunksOf(bytes)}));
      case 13:  // counts of a made-up number of events and vCPUs
        return Put(agent::Encode(CountsOf(bytes)));
      default:  // its kernel's trace, or a whole frame of any kind
        if (bytes.empty()) return;
        if (bytes[0] == std::byte{0xff}) return Put(agent::Encode(agent::Samples{TraceOf(bytes)}));
        return Put(agent::EncodeFrame(static_cast<uint16_t>(bytes[0]), bytes.subspan(1)));
    }
  }

  struct Action {
    unsigned kind = 0;
    Bytes bytes;
  };

  Bytes script_;
  std::optional<Action> next_;
  std::vector<std::byte> coming_;  // the first came_ of them have come
  size_t came_ = 0;
  agent::FrameReader heard_;
  uint64_t asked_ = 0;
  agent::FileKind wanted_ = agent::FileKind::kKallsyms;
  nanoseconds silent_until_{0};
  size_t most_at_once_ = size_t{1} << 20;
  bool deaf_ = false;
  bool leaves_ = false;
  bool gone_ = false;
};

// Runs `work`, and fails when it takes longer than `most` by the clock above.
template <typename Work>
auto Within(milliseconds most, const Work& work) {
  const nanoseconds begin = fake_time;
  auto result = work();
  if (fake_time - begin > most + milliseconds(100)) std::abort();
  return result;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace recording = xenoscope::recording;
  fake_time = std::chrono::seconds(1);
  const agent::Host host{.tsc_hz = 1'000'000'000,
                         .read_tsc = [] { return Tsc{static_cast<uint64_t>(fake_time.count())}; },
                         .now = Now};
  agent::Limits limits;
  limits.bytes = uint64_t{8} << 20;
  limits.pending_bytes = size_t{1} << 20;
  limits.pending_stack_bytes = uint64_t{1} << 20;
  limits.file_bytes = size_t{1} << 16;
  const recording::DomainInfo domain{.id = xenoscope::DomainId{3},
                                     .name = "web",
                                     .type = recording::DomainType::kPvh,
                                     .role = recording::Role::kNone,
                                     .vcpus = 2};
  auto opened = Within(limits.ready, [&] {
    return agent::Session::Open(
        domain, std::make_unique<FakeAgent>(std::as_bytes(std::span(data, size))), host, limits);
  });
  if (!opened.ok()) return 0;
  agent::Session& session = **opened;
  constexpr uint32_t kPiece = 128;
  agent::Prepare how;
  how.stack_bytes = kPiece;
  how.threads = true;
  if (!Within(limits.ready, [&] { return session.Prepare(how); }).ok()) return 0;
  if (size % 2 == 1) Within(limits.answer, [&] { return session.Enlist(); }).status().IgnoreError();
  uint64_t samples = 0;
  const auto take = [&](const recording::Sample& sample) {
    if (sample.when.Empty() || sample.vcpu.domain != domain.id) std::abort();
    ++samples;
  };
  session.Start(
      {take,
       [&](const recording::ProcessRecord& record) {
         if (record.domain != domain.id) std::abort();
       },
       [&](const recording::Sample& sample, const recording::UserStack* stack) {
         take(sample);
         if (stack != nullptr && stack->bytes.size() > kPiece) std::abort();
       },
       [&](xenoscope::VcpuId vcpu, const recording::DrainTimes& times, uint32_t page_size,
           Bytes pages) {
         if (vcpu.value >= domain.vcpus || pages.size() % page_size != 0) std::abort();
         if (times.before > Tsc{static_cast<uint64_t>(fake_time.count())}) std::abort();
       },
       [](std::string_view text) {
         if (text.size() > (size_t{1} << 20)) std::abort();
       },
       [&](const recording::DrainTimes& times, std::span<const recording::CpuTimesEntry> cpus) {
         if (times.before > Tsc{static_cast<uint64_t>(fake_time.count())}) std::abort();
         if (cpus.empty() || cpus.size() > domain.vcpus) std::abort();
         for (const recording::CpuTimesEntry& cpu : cpus) {
           if (cpu.cpu >= domain.vcpus || cpu.before > cpu.after) std::abort();
         }
       },
       [](const recording::ClockAnswer& answer) {
         if (answer.before > answer.after) std::abort();
       }});
  constexpr int kSteps = 64;
  for (int i = 0; i < kSteps && session.status().ok(); ++i) {
    fake_time += milliseconds(50);
    session.Step();
  }
  Within(limits.stop, [&] {
    session.Stop();
    return 0;
  });
  for (const auto kind : {agent::FileKind::kKallsyms, agent::FileKind::kVdso}) {
    size_t bytes = 0;
    Within(limits.file, [&] {
      auto part = session.Fetch(kind);
      for (; part.ok() && !part->last; part = session.Fetch(kind)) {
        if (part->content.empty()) std::abort();
        bytes += part->content.size();
      }
      return 0;
    });
    if (bytes > limits.file_bytes) std::abort();
  }
  const auto counts = Within(limits.answer, [&] { return session.Count({{"cycles"}}); });
  if (counts.ok() && (!counts->last || counts->obstacles.size() > agent::kMaxEvents)) std::abort();
  const std::vector<std::byte> shared(size_t{100'000});
  Within(limits.share, [&] { return session.Share(shared); }).IgnoreError();
  session.Bye();
  // The samples that were handed on are those that the accounts call kept.
  uint64_t kept = 0;
  for (const auto& stream : session.Streams()) kept += stream.kept;
  if (kept != samples) std::abort();
  return 0;
}
