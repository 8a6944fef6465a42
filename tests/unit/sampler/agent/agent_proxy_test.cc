// Recordings with an agent whose messages another process reads: when all goes well, and what that
// process can do when a guest has taken it over.
#include "sampler/agent/agent_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "recording/sample_format.h"
#include "recording/sample_reader.h"
#include "sampler/agent/agent_server.h"
#include "sampler/agent/agent_worker.h"
#include "sampler/agent/fd_channel.h"
#include "tests/unit/sampler/agent/chunks_with_stacks.h"
#include "tests/unit/sampler/agent/fake_agent.h"
#include "tests/unit/sampler/memory_peak.h"

namespace xenoscope::sampler {
namespace {

using recording::EventInfo;
using recording::Sample;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::byte> ChunkOf(Tsc when) {
  auto writer = recording::SampleWriter::InMemory();
  recording::Entry entry;
  entry.address = 0x1234;
  writer.Append({DomainId{0}, VcpuId{1}}, {when, when, when + 1}, {&entry, 1});
  return writer.Take();
}

// Plays an agent that takes a sample whenever it is asked for the time.
void Play(Channel& channel) {
  agent::FakeAgent guest(agent::Now);
  guest.hello.program = "a\33[31mgent";
  guest.ready_for.events = {{.name = "cpu-clock", .period = 1000, .clocked_by = "cpu-clock:100"}};
  guest.ready_for.events[0].modes = ModeSet{.user = true};
  guest.sample = [] { return ChunkOf(agent::Now()); };
  guest.files[agent::FileKind::kKallsyms].resize(50'000, std::byte{'#'});
  agent::Link link(channel);
  guest.Play(link, std::chrono::seconds(20));
}

// That of a guest without samples.
class NoSource final : public Source {
 public:
  recording::SourceInfo Info() const override { return {"none", "", 0, 0}; }
  std::vector<EventInfo> Events() const override { return {EventInfo{}}; }
  recording::Role RoleOf(DomainId /*domain*/) const override { return recording::Role::kActive; }
  absl::Status Start() override { return absl::OkStatus(); }
  steady_clock::time_point Due() const override { return steady_clock::now() + milliseconds(1); }
  absl::Status Collect(recording::SampleWriter& /*writer*/) override { return absl::OkStatus(); }
  absl::Status OnDomainCreated(const recording::DomainInfo& /*domain*/) override {
    return absl::UnimplementedError("");
  }
  absl::Status Stop(recording::SampleWriter& /*writer*/) override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }
  TscRange Sampled() const override { return {}; }
  std::vector<recording::StreamInfo> Streams() const override { return {}; }
};

class AgentProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
    request_.limits.ping_interval = milliseconds(5);
  }
  void TearDown() override {
    proxy_.reset();
    for (std::thread& thread : threads_) thread.join();
    std::filesystem::remove_all(path_);
  }

  AgentSource::Connect Connect() {
    return [this](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
      int fds[2] = {-1, -1};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
      threads_.emplace_back(
          [play = play_, channel = std::make_shared<FdChannel>(fds[1])] { play(*channel); });
      return std::make_unique<FdChannel>(fds[0]);
    };
  }

  // After a failure there is no proxy.
  absl::Status Open(const AgentProxy::Worker& worker = ServeAgentCalls) {
    XENOSCOPE_ASSIGN_OR_RETURN(proxy_,
                               AgentProxy::Open(domain_, request_, Connect(), host_, worker));
    return absl::OkStatus();
  }

  // Records for `length` and returns the samples.
  std::vector<Sample> Record(milliseconds length) {
    auto writer = recording::SampleWriter::Create(path_ + "/samples");
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE(proxy_->Start().ok());
    const auto end = steady_clock::now() + length;
    while (steady_clock::now() < end) {
      EXPECT_TRUE(proxy_->Collect(*writer).ok());
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_TRUE(proxy_->Stop(*writer).ok());
    EXPECT_TRUE(writer->Flush().ok());
    const auto file = MappedFile::Open(path_ + "/samples");
    auto reader = recording::SampleReader::Open(file->bytes(), 3);
    std::vector<Sample> samples;
    while (auto sample = reader->Next()) samples.push_back(*sample);
    EXPECT_FALSE(reader->damage().Any());
    return samples;
  }

  std::string path_ = (std::filesystem::temp_directory_path() / "proxy_test.XXXXXX").string();
  recording::DomainInfo domain_{.id = DomainId{3},
                                .name = "web",
                                .type = recording::DomainType::kPvh,
                                .role = recording::Role::kNone,
                                .vcpus = 2};
  AgentRequest request_;
  agent::Host host_{.tsc_hz = agent::FakeAgent::kHz, .read_tsc = agent::Now};
  std::function<void(Channel&)> play_ = Play;  // what the guest does
  std::vector<std::thread> threads_;
  std::unique_ptr<AgentProxy> proxy_;
};

TEST_F(AgentProxyTest, ForwardsSamplesAndFiles) {
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(proxy_->Info().name, "agent-3");
  EXPECT_THAT(proxy_->Notes(), ElementsAre(HasSubstr("web is active: its agent (a?[31mgent")));
  ASSERT_TRUE(proxy_->NumberEvents(2).ok());
  ASSERT_THAT(proxy_->Events(), SizeIs(1));
  EXPECT_EQ(proxy_->Events()[0].name, "cpu-clock");
  EXPECT_EQ(proxy_->Events()[0].modes, (ModeSet{.user = true}));

  const std::vector<Sample> samples = Record(milliseconds(200));
  ASSERT_GT(samples.size(), 3u);
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.vcpu, (VcpuRef{DomainId{3}, VcpuId{1}}));
    EXPECT_EQ(sample.address, 0x1234u);
    EXPECT_EQ(sample.event, 2);
    EXPECT_GE(sample.when.end, proxy_->Sampled().begin);
  }
  ASSERT_THAT(proxy_->Streams(), SizeIs(2));
  EXPECT_EQ(proxy_->Streams()[1].kept, samples.size());

  const auto writer = recording::Writer::Create(path_ + "/r.xeno");
  ASSERT_TRUE(writer.ok()) << writer.status();
  recording::RecordingInfo info;
  ASSERT_TRUE(proxy_->Save(*writer, info).ok());
  ASSERT_THAT(info.symbols, SizeIs(1)) << testing::PrintToString(proxy_->FinalNotes());
  EXPECT_EQ(std::filesystem::file_size(path_ + "/r.xeno/" + info.symbols[0].path), 50'000u);
  EXPECT_TRUE(proxy_->Close().ok());
  EXPECT_THAT(proxy_->FinalNotes(), IsEmpty());
}

// The process that reads them decompresses them, and has no files or privileges for that.
TEST_F(AgentProxyTest, ForwardsStacks) {
  request_.how.chains = true;
  request_.how.stack_bytes = 64;
  play_ = [](Channel& channel) {
    agent::FakeAgent guest(agent::Now);
    recording::SourceInfo& perf = guest.ready_for.sources.emplace_back();
    perf.name = "perf";
    perf.stacks.emplace();
    guest.sample = [] {
      return ChunksWithStacks({StackOf(7, AsBytes("piece"))}, {{0, sizeof(UserRegisters) + 5}},
                              agent::Now());
    };
    agent::Link link(channel);
    guest.Play(link, std::chrono::seconds(20));
  };
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(proxy_->Info().stacks);
  ASSERT_TRUE(proxy_->NumberEvents(2).ok());
  const std::vector<Sample> samples = Record(milliseconds(100));
  ASSERT_FALSE(samples.empty());
  const auto file = MappedFile::Open(path_ + "/samples");
  auto reader = recording::SampleReader::Open(file->bytes(), 3);
  ASSERT_NE(reader->Next(), nullptr);
  ASSERT_TRUE(reader->stack() && reader->stacks() != nullptr);
  recording::ReadStackBlock block;
  ASSERT_TRUE(block.Read(*reader->stacks()).ok());
  EXPECT_EQ(AsText(block.At(*reader->stack())->bytes), "piece");
  EXPECT_EQ(proxy_->Info().stacks->pieces, samples.size());
  EXPECT_TRUE(proxy_->Close().ok());
  EXPECT_THAT(proxy_->FinalNotes(), IsEmpty());
}

// A guest's file may have 64 MB, and there may be many guests.
TEST_F(AgentProxyTest, StreamsFiles) {
  if (!kHasMemoryPeak) GTEST_SKIP() << "the sanitizer keeps what is freed";
  constexpr size_t kFile = size_t{48} << 20;
  constexpr size_t kMaxGrowth = size_t{8} << 20;
  const auto parts = std::make_shared<agent::ServerParts>();
  parts->hello = agent::FakeAgent(agent::Now).hello;
  parts->open_source = [](const agent::Prepare&, const auto&) {
    return std::make_unique<NoSource>();
  };
  parts->read_tsc = agent::Now;
  parts->kallsyms = path_ + "/kallsyms";
  parts->modules = parts->proc = parts->tmp = path_ + "/missing";
  std::ofstream(parts->kallsyms) << std::string(kFile, '#');
  play_ = [parts](Channel& channel) {
    EXPECT_TRUE(agent::Server(channel, *parts).Serve(kNoFile).ok());
  };
  ASSERT_TRUE(Open().ok());
  Record(milliseconds(1));
  const auto writer = recording::Writer::Create(path_ + "/r.xeno");
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::string child;  // the sandbox
  std::ifstream("/proc/self/task/" + std::to_string(getpid()) + "/children") >> child;
  ASSERT_NE(child, "");
  BeginMemoryPeak();
  const uint64_t before = MemoryNow("self");
  const uint64_t before_there = MemoryNow(child);
  recording::RecordingInfo info;
  ASSERT_TRUE(proxy_->Save(*writer, info).ok());
  EXPECT_EQ(std::filesystem::file_size(path_ + "/r.xeno/guests/3/kallsyms"), kFile);
  EXPECT_LT(MemoryPeak("self"), before + kMaxGrowth);
  EXPECT_LT(MemoryPeak(child), before_there + kMaxGrowth);
  EXPECT_TRUE(proxy_->Close().ok());
}

TEST_F(AgentProxyTest, SignalEndsWaitForGuest) {
  request_.limits.hello = std::chrono::minutes(10);
  host_.is_interrupted = [] { return true; };
  const auto silent = [](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return std::make_unique<FdChannel>(fds[0]);  // the other end stays open and silent
  };
  const auto proxy = AgentProxy::Open(domain_, request_, silent, host_);
  EXPECT_TRUE(absl::IsCancelled(proxy.status())) << proxy.status();
}

TEST_F(AgentProxyTest, GivesUpDestroyedDomain) {
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(proxy_->NumberEvents(0).ok());
  ASSERT_TRUE(proxy_->Start().ok());
  proxy_->OnDomainDestroyed(DomainId{4});
  EXPECT_THAT(proxy_->FinalNotes(), IsEmpty());
  proxy_->OnDomainDestroyed(DomainId{3});
  EXPECT_THAT(proxy_->FinalNotes(), ElementsAre(HasSubstr("its domain has gone")));
}

// Returns a worker that behaves until it is called to collect, then does `then` instead.
AgentProxy::Worker TakenOver(const std::function<void(int control)>& then) {
  return [then](int control, int data, const recording::DomainInfo& domain,
                const AgentRequest& request, const agent::Host& host) {
    (void)data, (void)domain, (void)request, (void)host;
    int calls = 0;
    while (true) {
      uint32_t size = 0;
      std::array<std::byte, 1024> payload{};
      if (recv(control, &size, sizeof size, MSG_WAITALL) <= 0) return;
      if (recv(control, payload.data(), size, MSG_WAITALL) <= 0) return;
      if (payload[0] == std::byte{static_cast<uint8_t>(AgentCall::kInterrupt)}) continue;
      constexpr int kGoodCalls = 3;  // open, number events, start
      if (++calls > kGoodCalls) return then(control);
      AgentReply reply;
      reply.state.events = {EventInfo{}};
      reply.state.events[0].name = "cpu\nclock";
      reply.state.streams.resize(1);
      reply.state.streams[0].complete = true;
      const std::vector<std::byte> frame = Encode(reply);
      if (send(control, frame.data(), frame.size(), MSG_NOSIGNAL) < 0) return;
    }
  };
}

// Sends parts of a file without end.
void SendFileFor(int control, size_t part) {
  AgentReply reply;
  reply.flag = true;
  reply.bytes.resize(part);
  const std::vector<std::byte> frame = Encode(reply);
  std::array<std::byte, 1024> call{};
  do {
    if (send(control, frame.data(), frame.size(), MSG_NOSIGNAL) < 0) return;
  } while (recv(control, call.data(), call.size(), 0) > 0);
}

void SendReply(int control, const AgentReply& reply) {
  const std::vector<std::byte> frame = Encode(reply);
  (void)!send(control, frame.data(), frame.size(), MSG_NOSIGNAL);
  poll(nullptr, 0, -1);
}

std::vector<std::byte> ChunkOfDomain(uint16_t domain) {
  auto writer = recording::SampleWriter::InMemory();
  recording::TimedChunk chunk;
  chunk.Add({}, {});
  writer.Append(DomainId{domain}, chunk);
  return writer.Take();
}

TEST_F(AgentProxyTest, CompromisedReaderLosesOnlyItsOwnSamples) {
  struct Case {
    const char* what;
    std::function<void(int control)> then;
    const char* note;
    bool then_signal = false;  // whether the user sends a signal then
  };
  const auto reply_with = [](const std::function<void(AgentReply&)>& change) {
    return [change](int control) {
      AgentReply reply;
      change(reply);
      SendReply(control, reply);
    };
  };
  const Case cases[] = {
      {"it crashes", [](int) { __builtin_trap(); }, "it has gone; it ended by signal 4"},
      {"it ends", [](int) {}, "it has gone"},
      {"a reply without end",
       [](int control) {
         const std::array<uint32_t, 2> endless{0xffff'ffff, 0};
         (void)!send(control, endless.data(), sizeof endless, MSG_NOSIGNAL);
         poll(nullptr, 0, -1);
       },
       "its reply is longer than"},
      {"no reply",
       [](int control) {
         const std::array<uint32_t, 2> nonsense{4, 0xffff'ffff};
         (void)!send(control, nonsense.data(), sizeof nonsense, MSG_NOSIGNAL);
         poll(nullptr, 0, -1);
       },
       "it is no reply"},
      {"two replies",
       [](int control) {
         const std::vector<std::byte> frame = Encode(AgentReply{});
         std::vector<std::byte> twice = frame;
         twice.insert(twice.end(), frame.begin(), frame.end());
         (void)!send(control, twice.data(), twice.size(), MSG_NOSIGNAL);
         poll(nullptr, 0, -1);
       },
       "not asked"},
      {"samples of another domain",
       reply_with([](AgentReply& reply) { reply.bytes = ChunkOfDomain(1); }),
       "a chunk is of another domain"},
      {"half a chunk", reply_with([](AgentReply& reply) {
         reply.bytes = ChunkOfDomain(3);
         reply.bytes.pop_back();
       }),
       "a chunk is cut off"},
      {"no chunk", reply_with([](AgentReply& reply) { reply.bytes.resize(100); }),
       "no chunk of samples begins there"},
      {"a vCPU that the domain has not", reply_with([](AgentReply& reply) {
         reply.state.streams.resize(1);
         reply.state.streams[0].vcpu.vcpu = VcpuId{2};
       }),
       "it is no reply"},
      {"too many notes",
       reply_with([](AgentReply& reply) { reply.state.notes.resize(10'000, "note"); }),
       "it is no reply"},
      {"silence after a signal", [](int) { poll(nullptr, 0, -1); }, "it did not reply in time",
       true},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    bool interrupted = false;
    host_.is_interrupted = [&interrupted] { return interrupted; };
    ASSERT_TRUE(Open(TakenOver(each.then)).ok());
    ASSERT_TRUE(proxy_->NumberEvents(0).ok());
    EXPECT_EQ(proxy_->Events().at(0).name, "cpu?clock");
    interrupted = each.then_signal;
    EXPECT_THAT(Record(milliseconds(1)), IsEmpty());
    EXPECT_TRUE(proxy_->Close().ok());
    EXPECT_THAT(proxy_->FinalNotes(), ElementsAre(HasSubstr(each.note)));
    EXPECT_THAT(proxy_->Streams(),
                testing::Each(testing::Field(&recording::StreamInfo::complete, false)));
    std::filesystem::remove(path_ + "/samples");
    proxy_.reset();
  }
}

void Compute(milliseconds length) {
  struct timespec used {};
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec) < length);
}

TEST_F(AgentProxyTest, EndlessComputationEndsItsReader) {
  request_.limits.reply = milliseconds(50);
  ASSERT_TRUE(Open(TakenOver([](int) { Compute(std::chrono::hours(1)); })).ok());
  ASSERT_TRUE(proxy_->NumberEvents(0).ok());
  ASSERT_TRUE(proxy_->Start().ok());
  auto writer = recording::SampleWriter::InMemory();
  EXPECT_TRUE(proxy_->Collect(writer).ok());
  EXPECT_THAT(proxy_->FinalNotes(), ElementsAre(HasSubstr("it did not reply in time")));
}

// A dom0 that has too little processor time for all that records is no reason to lose an agent.
TEST_F(AgentProxyTest, WaitsForAReaderThatWaitsForAProcessor) {
  request_.limits.reply = milliseconds(80);
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  ASSERT_TRUE(Open(TakenOver([](int control) {
                Compute(milliseconds(60));
                SendReply(control, {});
              })).ok());
  ASSERT_TRUE(proxy_->NumberEvents(0).ok());
  ASSERT_TRUE(proxy_->Start().ok());
  std::atomic<bool> is_over = false;
  const auto spin = [&is_over] {
    while (!is_over) {
    }
  };
  std::array<std::thread, 3> others{std::thread(spin), std::thread(spin), std::thread(spin)};
  const auto begin = steady_clock::now();
  auto writer = recording::SampleWriter::InMemory();
  EXPECT_TRUE(proxy_->Collect(writer).ok());
  EXPECT_GT(steady_clock::now() - begin, request_.limits.reply);
  is_over = true;
  for (std::thread& other : others) other.join();
  sched_setaffinity(0, sizeof all, &all);
  EXPECT_THAT(proxy_->FinalNotes(), IsEmpty());
}

TEST_F(AgentProxyTest, EndlessFileEndsItsReader) {
  request_.limits.file_bytes = size_t{1} << 20;
  for (const size_t part : {size_t{0}, size_t{100'000}}) {
    ASSERT_TRUE(Open(TakenOver([part](int control) { SendFileFor(control, part); })).ok());
    ASSERT_TRUE(proxy_->NumberEvents(0).ok());
    ASSERT_TRUE(proxy_->Start().ok());
    const auto writer = recording::Writer::Create(path_ + "/r.xeno");
    ASSERT_TRUE(writer.ok()) << writer.status();
    recording::RecordingInfo info;
    EXPECT_TRUE(proxy_->Save(*writer, info).ok());
    EXPECT_THAT(info.symbols, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(path_ + "/r.xeno/guests/3/kallsyms"));
    EXPECT_THAT(proxy_->FinalNotes(), ElementsAre(HasSubstr("gives more of a file than")));
    EXPECT_TRUE(proxy_->Close().ok());
  }
}

}  // namespace
}  // namespace xenoscope::sampler
