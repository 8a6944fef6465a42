// What a guest's agent can do to dom0's recorder, in simulated time: how long the recorder waits,
// whatever the agent sends meanwhile, and what happens to late messages.
#include "sampler/agent/agent_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "recording/info_json.h"
#include "recording/sample_writer.h"
#include "sampler/agent/agent_source.h"
#include "tests/unit/sampler/agent/fake_agent.h"

namespace xenoscope::sampler::agent {
namespace {

using recording::Sample;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DomainId kWeb{3};

// Both TSCs count its nanoseconds.
struct Time {
  steady_clock::time_point now{seconds(1000)};
  Tsc Read() const { return Tsc{static_cast<uint64_t>(now.time_since_epoch().count())}; }
};

// A guest at the other end of a channel: its answers to dom0's messages, and messages at set times.
// Waiting for it advances the time.
class FakeGuest : public FakeAgent {
 public:
  explicit FakeGuest(Time& its_time)
      : FakeAgent([&its_time] { return its_time.Read(); }), time(its_time) {}

  void Hear(const AnyMessage& message) {
    if (std::holds_alternative<Ping>(message)) unanswered = std::get<Ping>(message).number;
    for (const AnyMessage& answer : AnswersTo(message)) Say(answer);
  }
  void Say(const AnyMessage& message) { SayBytes(Encode(message)); }
  void SayBytes(Bytes bytes) { said.insert(said.end(), bytes.begin(), bytes.end()); }
  void Answer() { Say(Pong{unanswered, time.Read().value}); }
  // Sends that from now on, every `interval`.
  void SayEvery(milliseconds interval, std::function<std::vector<std::byte>()> what) {
    every = interval;
    say = std::move(what);
    next = time.now + every;
  }

  Time& time;
  uint64_t unanswered = 0;  // number of the last ping
  std::deque<std::byte> said;
  milliseconds every{0};
  std::function<std::vector<std::byte>()> say;
  steady_clock::time_point next;
  FrameReader heard;
};

class FakeChannel final : public Channel {
 public:
  explicit FakeChannel(FakeGuest& guest) : guest_(guest) {}
  absl::StatusOr<size_t> Send(Bytes bytes) override {
    guest_.heard.Add(bytes);
    while (true) {
      const auto message = guest_.heard.Next();
      EXPECT_TRUE(message.ok());
      if (!*message) return bytes.size();
      guest_.Hear(**message);
    }
  }
  absl::StatusOr<size_t> Receive(std::span<std::byte> into) override {
    const size_t n = std::min(into.size(), guest_.said.size());
    std::copy_n(guest_.said.begin(), n, into.begin());
    guest_.said.erase(guest_.said.begin(), guest_.said.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void Wait(bool /*to_send*/, steady_clock::time_point until, int /*other*/) override {
    if (!guest_.said.empty()) return;
    if (guest_.say && guest_.next <= until) {
      guest_.time.now = std::max(guest_.time.now, guest_.next);
      guest_.next += guest_.every;
      guest_.SayBytes(guest_.say());
      return;
    }
    guest_.time.now = std::max(guest_.time.now, until);
  }

 private:
  FakeGuest& guest_;
};

class AgentSessionTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Session>> Open() {
    return Session::Open(domain_, std::make_unique<FakeChannel>(guest_), host_, limits_);
  }
  std::unique_ptr<Session> Ready() {
    auto session = Open();
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Prepare({}).ok());
    return *std::move(session);
  }
  std::unique_ptr<Session> Sampling() {
    auto session = Ready();
    session->Start({.sample = [this](const Sample& sample) { samples_.push_back(sample.when); },
                    .process = [](const recording::ProcessRecord&) {}});
    return session;
  }
  // Fetches a file, and returns its length, or why it is not whole.
  static absl::StatusOr<size_t> FetchAll(Session& session, FileKind kind) {
    size_t bytes = 0;
    while (true) {
      XENOSCOPE_ASSIGN_OR_RETURN(const FilePart part, session.Fetch(kind));
      EXPECT_TRUE(part.last || !part.content.empty());
      bytes += part.content.size();
      if (part.last) return bytes;
    }
  }
  // Steps for so long, as a source does.
  void Go(Session& session, milliseconds length) {
    for (const auto until = time_.now + length; time_.now < until; time_.now += milliseconds(20)) {
      session.Step();
    }
  }
  milliseconds Since(steady_clock::time_point begin) const {
    return std::chrono::duration_cast<milliseconds>(time_.now - begin);
  }
  // Returns a sample taken now, with so many callers.
  AnyMessage SampleNow(size_t callers = 0) const {
    recording::TimedEntry entry;
    entry.begin = time_.Read().value;
    entry.end = entry.begin + 1;
    entry.user_callers = static_cast<uint16_t>(callers);
    recording::TimedChunk chunk;
    chunk.Add(entry, std::vector<Address>(callers, 0x10));
    auto writer = recording::SampleWriter::InMemory();
    writer.Append(kDom0, chunk);
    return Samples{writer.Take()};
  }

  Time time_;
  FakeGuest guest_{time_};
  recording::DomainInfo domain_{.id = kWeb,
                                .name = "web",
                                .type = recording::DomainType::kPvh,
                                .role = recording::Role::kNone,
                                .vcpus = 2};
  bool is_interrupted_ = false;
  Host host_{.tsc_hz = FakeAgent::kHz,
             .read_tsc = [this] { return time_.Read(); },
             .now = [this] { return time_.now; },
             .is_interrupted = [this] { return is_interrupted_; }};
  Limits limits_;
  std::vector<TscRange> samples_;
};

// Pages of two vCPUs and of one that the domain has not, and formats.
std::vector<std::byte> ChunksOfTrace(uint64_t tsc) {
  auto writer = recording::SampleWriter::InMemory();
  const recording::DrainTimes times{Tsc{tsc - 2}, Tsc{tsc - 1}, Tsc{tsc}};
  const std::vector<std::byte> pages(8192);
  for (const uint32_t vcpu : {0, 1, 2}) {
    writer.AppendTracePages({kDom0, VcpuId{vcpu}}, times, 4096, pages);
  }
  writer.AppendTraceFormats(kDom0, "# header_page\n");
  // What the kernel says of a vCPU, of one that the domain has not, and with an end before the
  // begin.
  const recording::CpuTimesEntry cpus[] = {{.before = tsc, .after = tsc, .cpu = 1, .busy = 10},
                                           {.before = tsc, .after = tsc, .cpu = 2},
                                           {.before = tsc, .after = tsc - 1, .cpu = 0}};
  writer.AppendCpuTimes(kDom0, times, cpus);
  return writer.Take();
}

// The guest's kernel's trace goes through as it is, with the answers that its clock is found by.
TEST_F(AgentSessionTest, HandsOnTheKernelsTraceThatWasAskedFor) {
  for (const bool asked : {true, false}) {
    guest_.ready_for.kernel_traces = {{.source = "ftrace", .vcpu = {}, .read = 0, .lost = 0}};
    guest_.sample = [this] { return ChunksOfTrace(time_.Read().value); };
    auto session = *Open();
    agent::Prepare how;
    how.threads = asked;
    ASSERT_TRUE(session->Prepare(how).ok());
    EXPECT_EQ(guest_.prepared->threads, asked);
    EXPECT_EQ(session->threads(), asked);
    std::vector<std::string> got;
    std::vector<recording::ClockAnswer> answers;
    session->Start(
        {.sample = [](const Sample&) {},
         .process = [](const recording::ProcessRecord&) {},
         .trace_pages =
             [&](VcpuId vcpu, const recording::DrainTimes& times, uint32_t size, Bytes pages) {
               EXPECT_LE(times.before, times.after);
               got.push_back(fmt::format("v{} {}/{}", vcpu.value, pages.size(), size));
             },
         .trace_formats = [&](std::string_view text) { got.emplace_back(text); },
         .cpu_times =
             [&](const recording::DrainTimes& times,
                 std::span<const recording::CpuTimesEntry> cpus) {
               EXPECT_LE(times.previous_before, times.after);
               for (const auto& cpu : cpus) got.push_back(fmt::format("c{} {}", cpu.cpu, cpu.busy));
             },
         .clock_answer = [&](const recording::ClockAnswer& answer) { answers.push_back(answer); }});
    const size_t first = answers.size();
    Go(*session, milliseconds(250));
    if (asked) {
      EXPECT_EQ(first, static_cast<size_t>(limits_.first_pings));
      ASSERT_GT(answers.size(), first);
      for (const recording::ClockAnswer& answer : answers) {
        EXPECT_LE(answer.before, answer.guest);
        EXPECT_LE(answer.guest, answer.after);
      }
      ASSERT_GE(got.size(), 4U);
      EXPECT_THAT(std::vector(got.begin(), got.begin() + 4),
                  ElementsAre("v0 8192/4096", "v1 8192/4096", "# header_page\n", "c1 10"));
      EXPECT_GE(session->refused().pages, 1U);
      EXPECT_GE(session->refused().cpu_times, 2U);
    } else {
      EXPECT_THAT(answers, IsEmpty());
      EXPECT_THAT(got, IsEmpty());
      EXPECT_GE(session->refused().pages, 4U);
      EXPECT_GE(session->refused().cpu_times, 3U);
    }
    session->Stop();
  }
}

// Its own counts are those of its vCPUs.
TEST_F(AgentSessionTest, TakesTheCountsOfTheKernelsTrace) {
  guest_.ready_for.kernel_traces = {{.source = "ftrace", .vcpu = {}, .read = 0, .lost = 0}};
  auto session = *Open();
  agent::Prepare how;
  how.threads = true;
  ASSERT_TRUE(session->Prepare(how).ok());
  session->Start({.sample = [](const Sample&) {},
                  .process = [](const recording::ProcessRecord&) {},
                  .clock_answer = [](const recording::ClockAnswer&) {}});
  recording::RecordingInfo account;
  for (const uint32_t vcpu : {0, 1, 7}) {
    account.kernel_traces.push_back(
        {.source = "x", .vcpu = {kDom0, VcpuId{vcpu}}, .read = 5 + vcpu, .lost = vcpu});
  }
  guest_.is_mute = [](const AnyMessage& message) {
    return std::holds_alternative<agent::Stop>(message);
  };
  guest_.Say(Account{recording::ToJson(account), true});
  session->Stop();
  EXPECT_THAT(session->kernel_traces(),
              ElementsAre(recording::KernelTraceInfo{"agent-3", {kWeb, VcpuId{0}}, 5, 0},
                          recording::KernelTraceInfo{"agent-3", {kWeb, VcpuId{1}}, 6, 1}));
}

// An agent of an older version is not asked, and one whose clock runs at another rate neither.
TEST_F(AgentSessionTest, AsksOnlyAgentsForThreadsThatCanSendThem) {
  agent::Prepare how;
  how.threads = true;
  guest_.hello.minor = kFirstMinorWithThreads - 1;
  auto session = *Open();
  ASSERT_TRUE(session->Prepare(how).ok());
  EXPECT_FALSE(guest_.prepared->threads);
  guest_.hello.minor = kMinor;
  guest_.hello.tsc_native = false;
  session = *Open();
  ASSERT_TRUE(session->Prepare(how).ok());
  EXPECT_FALSE(guest_.prepared->threads);
}

// Events of its kernel go to agents that know them; why some do not come is the guest's text.
TEST_F(AgentSessionTest, AsksForEventsOfTheKernel) {
  agent::Prepare how;
  how.threads = true;
  how.kernel_events = {"raw_syscalls"};
  how.functions = {"acpi_*"};
  how.shutdown = true;
  guest_.ready_for.kernel_traces = {{.source = "ftrace", .vcpu = {}, .read = 0, .lost = 0}};
  guest_.ready_for.sources.push_back({"perf", "", 0, 0});
  guest_.ready_for.sources[0].problems.assign(20, "no\x1b[2J" + std::string(1000, 'x'));
  auto session = *Open();
  const absl::Status ready = session->Prepare(how);
  ASSERT_TRUE(ready.ok()) << ready;
  EXPECT_EQ(guest_.prepared->kernel_events, how.kernel_events);
  EXPECT_EQ(guest_.prepared->functions, how.functions);
  EXPECT_TRUE(guest_.prepared->cpu_times);
  EXPECT_TRUE(guest_.prepared->shutdown);
  ASSERT_EQ(session->notes().size(), 16U);
  EXPECT_EQ(session->notes()[0], "no?[2J" + std::string(250, 'x'));
  guest_.hello.minor = kFirstMinorWithKernelEvents - 1;
  session = *Open();
  ASSERT_TRUE(session->Prepare(how).ok());
  EXPECT_TRUE(guest_.prepared->threads);
  EXPECT_TRUE(guest_.prepared->kernel_events.empty());
  EXPECT_TRUE(guest_.prepared->functions.empty());
  EXPECT_FALSE(guest_.prepared->cpu_times);
}

class AgentWaitTest : public AgentSessionTest {
 protected:
  // The guest does not answer from the message on, except with `say` every `interval`.
  template <typename Message>
  void MuteTo(milliseconds interval, std::function<std::vector<std::byte>()> say) {
    guest_.is_mute = [this, interval, say = std::move(say)](const AnyMessage& message) {
      if (std::holds_alternative<Message>(message)) guest_.SayEvery(interval, say);
      return guest_.say != nullptr;  // an answer in the middle of a frame would be damage
    };
  }
  // Returns how long each wait takes with a guest that does that.
  std::vector<milliseconds> Waits(milliseconds interval,
                                  const std::function<std::vector<std::byte>()>& say) {
    std::vector<milliseconds> waits;
    const auto measure = [&](const std::function<void()>& wait) {
      const auto begin = time_.now;
      wait();
      waits.push_back(Since(begin));
      guest_.is_mute = nullptr;
      guest_.say = nullptr;
      guest_.said.clear();
      guest_.heard = {};
      sent_ = 0;
    };
    MuteTo<Hello>(interval, say);
    measure([&] { EXPECT_FALSE(Open().ok()); });
    MuteTo<agent::Ping>(interval, say);
    measure([&] { EXPECT_FALSE(Open().ok()); });
    auto session = *Open();
    MuteTo<agent::Prepare>(interval, say);
    measure([&] { EXPECT_FALSE(session->Prepare({}).ok()); });
    session = Ready();
    MuteTo<agent::Enlist>(interval, say);
    measure([&] { EXPECT_FALSE(session->Enlist().ok()); });
    session = Sampling();
    MuteTo<agent::Stop>(interval, say);
    measure([&] { session->Stop(); });
    EXPECT_FALSE(session->status().ok());
    session = Sampling();
    session->Stop();
    EXPECT_TRUE(session->status().ok()) << session->status();
    MuteTo<Want>(interval, say);
    measure([&] {
      EXPECT_FALSE(session->Fetch(FileKind::kKallsyms).ok());
      EXPECT_FALSE(session->Fetch(FileKind::kModules).ok());  // it is not waited for again
    });
    return waits;
  }

  size_t sent_ = 0;  // bytes of a frame
};

TEST_F(AgentWaitTest, MessagesDoNotExtendWait) {
  struct Guest {
    const char* what;
    std::function<std::vector<std::byte>()> say;
    milliseconds stop;  // while it sends, what waits in it can still come
  };
  const Guest guests[] = {
      {"silent", [] { return std::vector<std::byte>(); }, limits_.answer},
      {"frames of a kind that is not known", [] { return EncodeFrame(99, {}); }, limits_.stop},
      {"a frame, byte by byte",
       [this] { return std::vector<std::byte>{EncodeFrame(99, {})[sent_++ % kFrameHeader]}; },
       limits_.stop},
  };
  for (const auto& [what, say, stop] : guests) {
    EXPECT_THAT(Waits(milliseconds(700), say),
                ElementsAre(limits_.hello, limits_.ready, limits_.ready, limits_.answer, stop,
                            limits_.file))
        << what;
  }
}

// What waits in a guest that had little CPU time comes late, but it comes.
TEST_F(AgentWaitTest, WaitsForWhatGuestStillSendsAfterStop) {
  const auto session = Sampling();
  const auto begin = time_.now;
  bool has_stopped = false;
  MuteTo<agent::Stop>(limits_.answer / 2, [&] {
    if (Since(begin) < limits_.answer * 2) return EncodeFrame(99, {});
    if (std::exchange(has_stopped, true)) return std::vector<std::byte>();
    guest_.is_mute = nullptr;
    return Encode(agent::Account{recording::ToJson({}), true});
  });
  session->Stop();
  EXPECT_TRUE(session->status().ok()) << session->status();
  EXPECT_GE(Since(begin), limits_.answer * 2);
  EXPECT_LT(Since(begin), limits_.stop);
}

TEST_F(AgentWaitTest, SignalEndsEachWait) {
  const auto interrupt = [this]() -> std::vector<std::byte> {
    is_interrupted_ = true;
    return {};
  };
  MuteTo<agent::Ping>(milliseconds(500), interrupt);
  auto begin = time_.now;
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("a signal ended the wait"));
  EXPECT_EQ(Since(begin), milliseconds(500));
  is_interrupted_ = false;
  guest_.is_mute = nullptr;
  guest_.said.clear();
  guest_.heard = {};
  guest_.say = nullptr;
  auto session = Sampling();
  MuteTo<agent::Stop>(milliseconds(500), interrupt);
  begin = time_.now;
  session->Stop();
  EXPECT_EQ(Since(begin), milliseconds(500));
  EXPECT_EQ(session->status().code(), absl::StatusCode::kCancelled);
}

// Each byte used to extend the time for an answer.
TEST_F(AgentSessionTest, SlowFileHasATimeLimit) {
  auto session = Sampling();
  session->Stop();
  guest_.is_mute = [](const AnyMessage& message) { return std::holds_alternative<Want>(message); };
  guest_.SayEvery(seconds(7), [] {
    return Encode(FilePart{FileKind::kKallsyms, false, std::vector<std::byte>(1)});
  });
  const auto begin = time_.now;
  EXPECT_THAT(std::string(FetchAll(*session, FileKind::kKallsyms).status().message()),
              HasSubstr("it did not send its file within 30 s"));
  EXPECT_EQ(Since(begin), limits_.file);
}

TEST_F(AgentSessionTest, AllFilesHaveATimeLimit) {
  limits_.files = seconds(40);
  auto session = Sampling();
  session->Stop();
  guest_.is_mute = [](const AnyMessage& message) { return std::holds_alternative<Want>(message); };
  FileKind kind = FileKind::kKallsyms;
  guest_.SayEvery(seconds(25), [&kind] { return Encode(FilePart{kind, true, {}}); });
  const auto begin = time_.now;
  EXPECT_TRUE(session->Fetch(kind).ok());
  kind = FileKind::kModules;
  EXPECT_THAT(std::string(session->Fetch(kind).status().message()),
              HasSubstr("it did not send its files within 40 s"));
  EXPECT_EQ(Since(begin), limits_.files);
}

TEST_F(AgentSessionTest, StreamsFile) {
  limits_.file_bytes = 5;
  auto session = Sampling();
  session->Stop();
  guest_.is_mute = [](const AnyMessage& message) { return std::holds_alternative<Want>(message); };
  size_t sent = 0;
  guest_.SayEvery(seconds(1), [&sent] {
    return Encode(FilePart{FileKind::kKallsyms, ++sent == 3, std::vector<std::byte>(1)});
  });
  for (size_t i = 1; i <= 3; ++i) {
    const auto part = session->Fetch(FileKind::kKallsyms);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(sent, i);
    EXPECT_THAT(part->content, SizeIs(1));
    EXPECT_EQ(part->last, i == 3);
  }
  sent = 3;
  EXPECT_THAT(std::string(FetchAll(*session, FileKind::kKallsyms).status().message()),
              HasSubstr("its file is longer than"));
}

TEST_F(AgentSessionTest, SignalEndsFile) {
  auto session = Sampling();
  session->Stop();
  guest_.is_mute = [](const AnyMessage& message) { return std::holds_alternative<Want>(message); };
  guest_.SayEvery(milliseconds(1), [] {
    return Encode(FilePart{FileKind::kKallsyms, false, std::vector<std::byte>(1)});
  });
  ASSERT_TRUE(session->Fetch(FileKind::kKallsyms).ok());
  is_interrupted_ = true;
  EXPECT_TRUE(absl::IsCancelled(session->Fetch(FileKind::kKallsyms).status()));
}

// A starved guest is slow, and loses nothing thereby.
TEST_F(AgentSessionTest, SharesInParts) {
  auto session = Open();
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::byte> bytes(3 * kMaxPayload, std::byte{7});
  bytes.back() = std::byte{8};
  EXPECT_TRUE((*session)->Share(bytes).ok());
  EXPECT_EQ(guest_.shared, bytes);
  EXPECT_TRUE((*session)->Share({}).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted((*session)->Share(std::vector<std::byte>(kMaxSharedBytes + 1))));
  EXPECT_EQ(guest_.shared, bytes);
  EXPECT_TRUE((*session)->status().ok());
}

TEST_F(AgentSessionTest, SharesOnlyWithAgentsThatKeepIt) {
  guest_.hello.minor = kFirstMinorWithShare - 1;
  auto old = Open();
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_THAT(std::string((*old)->Share({}).message()), HasSubstr("too old for record --share"));
  EXPECT_THAT(guest_.shared, IsEmpty());
  guest_.hello.minor = kMinor;
  guest_.when_shared = Failed{"no\nroom"};
  auto refusing = Open();
  ASSERT_TRUE(refusing.ok()) << refusing.status();
  const absl::Status refused = (*refusing)->Share(std::vector<std::byte>(5));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("its agent does not keep it: no?room"));
  EXPECT_TRUE((*refusing)->status().ok());
}

// Whatever the guest sends meanwhile.
TEST_F(AgentSessionTest, SharingHasATimeLimit) {
  auto session = Open();
  ASSERT_TRUE(session.ok()) << session.status();
  guest_.is_mute = [](const AnyMessage& message) { return Is<agent::Share>(message); };
  guest_.SayEvery(milliseconds(90), [] { return EncodeFrame(999, {}); });
  const auto begin = time_.now;
  const absl::Status shared = (*session)->Share(std::vector<std::byte>(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(shared)) << shared;
  EXPECT_THAT(std::string(shared.message()), HasSubstr("did not take what is shared with it"));
  EXPECT_LT(time_.now - begin, limits_.share + milliseconds(200));
  EXPECT_FALSE((*session)->Share({}).ok());
}

TEST_F(AgentSessionTest, RefusesAnAnswerWithoutAShare) {
  auto session = Open();
  ASSERT_TRUE(session.ok()) << session.status();
  guest_.Say(Shared{});
  (*session)->Step();
  EXPECT_THAT(std::string((*session)->status().message()), HasSubstr("was not shared"));
}

TEST_F(AgentSessionTest, KeepsSamplesOfLateGuest) {
  auto session = Sampling();
  Go(*session, seconds(1));
  EXPECT_EQ(session->lateness(), Lateness());
  guest_.is_mute = [](const AnyMessage& message) { return std::holds_alternative<Ping>(message); };
  const Tsc taken = time_.Read();
  guest_.Say(SampleNow());
  Go(*session, seconds(60));
  EXPECT_TRUE(session->status().ok()) << session->status();
  EXPECT_THAT(samples_, IsEmpty());
  EXPECT_EQ(session->lateness().times, 1U);
  EXPECT_GT(session->lateness().longest, seconds(59));
  guest_.is_mute = nullptr;
  guest_.Answer();
  Go(*session, seconds(1));
  ASSERT_THAT(samples_, SizeIs(1));
  EXPECT_TRUE(samples_[0].Contains(taken));
  EXPECT_EQ(session->lateness().times, 1U);
  session->Stop();
  EXPECT_TRUE(session->status().ok()) << session->status();
}

TEST_F(AgentSessionTest, KeepsSamplesOfEndedSession) {
  auto session = Sampling();
  Go(*session, seconds(1));
  guest_.is_mute = [](const AnyMessage& message) { return std::holds_alternative<Ping>(message); };
  Go(*session, seconds(1));
  guest_.Say(SampleNow());
  time_.now += seconds(1);
  guest_.Say(Bye{});
  session->Step();
  EXPECT_FALSE(session->status().ok());
  EXPECT_THAT(samples_, SizeIs(1));
}

TEST_F(AgentSessionTest, DropsSamplesAfterStop) {
  auto session = Sampling();
  Go(*session, seconds(1));
  guest_.is_mute = [this](const AnyMessage& message) {
    if (!std::holds_alternative<agent::Stop>(message)) return false;
    guest_.Say(SampleNow());
    time_.now += seconds(5);  // before the session sees that it is to stop
    guest_.Say(SampleNow());
    return false;
  };
  const Tsc stopped = time_.Read();
  session->Stop();
  EXPECT_TRUE(session->status().ok()) << session->status();
  for (const TscRange& when : samples_) EXPECT_LT(when.begin, stopped);
  EXPECT_EQ(session->refused().mistimed, 0U);
  EXPECT_LE(samples_.size(), 1U);
}

TEST_F(AgentSessionTest, CountsCallers) {
  auto session = Sampling();
  Go(*session, seconds(1));
  guest_.Say(SampleNow(3));
  guest_.Say(SampleNow(4));
  Go(*session, seconds(1));
  session->Stop();
  const recording::StreamInfo stream = session->Streams()[0];
  EXPECT_EQ(stream.callers, 7U);
}

TEST_F(AgentSessionTest, RefusesMoreEventsThanRequested) {
  guest_.is_mute = [this](const AnyMessage& message) {
    if (!std::holds_alternative<agent::Prepare>(message)) return false;
    recording::RecordingInfo info;
    info.events.resize(3);
    guest_.Say(Prepared{recording::ToJson(info)});
    return true;
  };
  EXPECT_THAT(std::string((*Open())->Prepare({{"cycles", "faults"}}).message()),
              HasSubstr("it is ready for 3 events; 1 to 2 were asked for"));
}

// There are 16 guests of 16 events each, beside dom0's own.
TEST_F(AgentSessionTest, RefusesMoreEventsThanTheFormatAllows) {
  AgentRequest request;
  const auto connect = [this](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
    return std::make_unique<FakeChannel>(guest_);
  };
  auto source = AgentSource::Open(domain_, request, connect, host_);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_TRUE((*source)->NumberEvents(recording::kMaxRecordingEvents - 1).ok());
  const absl::Status status = (*source)->NumberEvents(recording::kMaxRecordingEvents);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace xenoscope::sampler::agent
