// Recorder and agent over a socket: what both do when all goes well, and what a hostile program in
// the agent's place can do to a recording.
#include "sampler/agent/agent_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "recording/chunk_reader.h"
#include "recording/info_json.h"
#include "recording/sample_reader.h"
#include "sampler/agent/agent_server.h"
#include "sampler/agent/fd_channel.h"
#include "tests/unit/sampler/agent/chunks_with_stacks.h"
#include "tests/unit/sampler/agent/fake_agent.h"

namespace xenoscope::sampler {
namespace {

using agent::AnyMessage;
using recording::EventInfo;
using recording::Sample;
using recording::StreamInfo;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kHz = agent::FakeAgent::kHz;
constexpr uint64_t kAhead = 77'000'000'000;  // offset of the guest's clock

// Both use one clock; the guest's is ahead by a constant.
Tsc GuestNow() { return agent::Now() + kAhead; }

// The guest's source: it takes a sample whenever it is asked, in turn kernel and user.
class FakeSource : public Source {
 public:
  recording::SourceInfo Info() const override { return {"made-up", "", 0, 0}; }
  std::vector<EventInfo> Events() const override {
    EventInfo event;
    event.name = "cpu-clock";
    event.period = stopped_ ? 1'000'100 : 1'000'000;
    event.clocked_by = "timer:1000";
    return {event};
  }
  recording::Role RoleOf(DomainId /*domain*/) const override { return recording::Role::kActive; }
  absl::Status Start() override {
    due_ = steady_clock::now();
    return absl::OkStatus();
  }
  steady_clock::time_point Due() const override { return due_; }
  absl::Status Collect(recording::SampleWriter& writer) override {
    recording::Entry entry;
    entry.address = 0x1000 + stream_.drained;
    entry.mode = stream_.drained % 2;
    ++(entry.mode == 0 ? stream_.logged.user : stream_.logged.kernel);
    ++stream_.drained;
    ++stream_.kept;
    const Tsc now = GuestNow();
    writer.Append({DomainId{0}, VcpuId{1}}, {now, now, now + 1}, {&entry, 1});
    due_ = steady_clock::now() + milliseconds(1);
    return absl::OkStatus();
  }
  absl::Status OnDomainCreated(const recording::DomainInfo& /*domain*/) override {
    return absl::UnimplementedError("");
  }
  absl::Status Stop(recording::SampleWriter& writer) override {
    stopped_ = true;
    return Collect(writer);
  }
  absl::Status Close() override { return absl::OkStatus(); }
  TscRange Sampled() const override { return {}; }
  std::vector<StreamInfo> Streams() const override {
    StreamInfo stream = stream_;
    stream.vcpu = {DomainId{0}, VcpuId{1}};
    stream.source = "made-up";
    stream.complete = stopped_;
    return {stream};
  }

 private:
  StreamInfo stream_;
  bool stopped_ = false;
  steady_clock::time_point due_;
};

// The same by xenoprof: ready when it is listed for the second time, and with samples in Xen.
class FakeMember final : public FakeSource {
 public:
  recording::SourceInfo Info() const override { return {"xenoprof", "x86-64/family15h", 0, 0}; }
  absl::StatusOr<bool> Enlist() override { return ++enlisted_ == 1; }
  absl::Status Collect(recording::SampleWriter& writer) override {
    recording::Entry entry;
    entry.mode = 2;
    const Tsc now = GuestNow();
    writer.Append({DomainId{0}, VcpuId{0}}, {now, now, now + 1}, {&entry, 1});
    return FakeSource::Collect(writer);
  }

 private:
  int enlisted_ = 0;
};

using Ends = std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>>;

Ends Connected() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {std::make_unique<FdChannel>(fds[0]), std::make_unique<FdChannel>(fds[1])};
}

agent::Hello GuestHello() {
  return {.major = agent::kMajor,
          .minor = 9,
          .vcpus = 2,
          .tsc_hz = kHz,
          .tsc_native = true,
          .program = "xenoscope test",
          .kernel = "6.1"};
}

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / "agent_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
    std::ofstream(path_ + "/kallsyms") << "ffffffff81000000 T _text\n" << std::string(100'000, '#');
    parts_.hello = GuestHello();
    parts_.open_source = [](const agent::Prepare&, const auto&) {
      return std::make_unique<FakeSource>();
    };
    parts_.read_tsc = GuestNow;
    parts_.kallsyms = path_ + "/kallsyms";
    parts_.modules = path_ + "/missing";
    parts_.proc = path_ + "/proc";
    parts_.tmp = path_;
    request_.limits.hello = milliseconds(500);
    request_.limits.ready = request_.limits.answer = milliseconds(500);
    request_.limits.file = request_.limits.files = milliseconds(500);
    request_.limits.ping_interval = milliseconds(10);
  }
  void TearDown() override {
    for (std::thread& thread : threads_) thread.join();
    std::filesystem::remove_all(path_);
  }

  // Returns a guest in which `play` has the agent's end of the channel.
  AgentSource::Connect Guest(const std::function<void(Channel&)>& play) {
    return [this, play](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
      Ends ends = Connected();
      threads_.emplace_back(
          [play, end = std::shared_ptr<Channel>(std::move(ends.second))] { play(*end); });
      return std::move(ends.first);
    };
  }
  AgentSource::Connect HonestGuest() {
    return Guest([this](Channel& channel) {
      agent::Server server(channel, parts_);
      EXPECT_TRUE(server.Serve(kNoFile).ok());
      ++served_;
    });
  }

  // Returns a guest that behaves as an agent until it is to start, then does `then`.
  AgentSource::Connect Stranger(const std::function<void(agent::Link&)>& then) {
    return Guest([then](Channel& channel) {
      agent::FakeAgent guest(GuestNow);
      guest.hello = GuestHello();
      agent::Link link(channel);
      guest.Play(link, std::chrono::seconds(3), agent::Is<agent::Start>);
      then(link);
    });
  }

  // Opens a session with the agent at the other end of what `connect` returns.
  absl::StatusOr<std::unique_ptr<AgentSource>> Open(const AgentSource::Connect& connect) {
    return AgentSource::Open(domain_, request_, connect, host_);
  }

  // Records for `length` and returns the samples.
  std::vector<Sample> Record(AgentSource& source, milliseconds length) {
    auto writer = recording::SampleWriter::Create(path_ + "/samples");
    EXPECT_TRUE(writer.ok());
    EXPECT_TRUE(source.NumberEvents(4).ok());
    EXPECT_TRUE(source.Start().ok());
    const auto end = steady_clock::now() + length;
    while (steady_clock::now() < end) {
      EXPECT_TRUE(source.Collect(*writer).ok());
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_TRUE(source.Stop(*writer).ok());
    EXPECT_TRUE(writer->Flush().ok());
    auto file = MappedFile::Open(path_ + "/samples");
    auto reader = recording::SampleReader::Open(file->bytes(), 6);
    std::vector<Sample> samples;
    while (auto sample = reader->Next()) samples.push_back(*sample);
    EXPECT_FALSE(reader->damage().Any());
    return samples;
  }

  // Returns what the user reads after a recording with a guest that does this once it is to sample.
  std::string AfterRecordingWith(const std::function<void(agent::Link&)>& then) {
    const auto source = Open(Stranger(then));
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return "";
    samples_ = Record(**source, milliseconds(100));
    EXPECT_TRUE((*source)->Close().ok());
    streams_ = (*source)->Streams();
    std::string all;
    for (const std::string& line : (*source)->FinalNotes()) all += line + "\n";
    return all;
  }

  std::string path_;
  agent::ServerParts parts_;
  recording::DomainInfo domain_{.id = DomainId{3},
                                .name = "web",
                                .type = recording::DomainType::kPvh,
                                .role = recording::Role::kNone,
                                .vcpus = 2};
  AgentRequest request_;
  agent::Host host_{.tsc_hz = kHz, .read_tsc = agent::Now};
  std::vector<std::thread> threads_;
  std::atomic<int> served_ = 0;
  std::vector<Sample> samples_;
  std::vector<StreamInfo> streams_;
};

std::vector<std::byte> ChunkOf(VcpuRef vcpu, uint8_t mode, uint8_t event, Tsc when) {
  auto writer = recording::SampleWriter::InMemory();
  recording::Entry entry;
  entry.mode = mode;
  entry.event = event;
  writer.Append(vcpu, {when, when, when + 1}, {&entry, 1});
  return writer.Take();
}

TEST_F(AgentTest, ConvertsTimesAndAccountsForAllSamples) {
  const auto opened = Open(HonestGuest());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->RoleOf(DomainId{3}), recording::Role::kActive);
  EXPECT_EQ((*opened)->RoleOf(DomainId{4}), recording::Role::kNone);
  EXPECT_THAT((*opened)->Notes(), ElementsAre(HasSubstr("web is active")));
  const Tsc before = agent::Now();
  const std::vector<Sample> samples = Record(**opened, milliseconds(200));
  ASSERT_GT(samples.size(), 20u);
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].vcpu, (VcpuRef{DomainId{3}, VcpuId{1}}));
    EXPECT_EQ(samples[i].address, 0x1000 + i);
    EXPECT_EQ(samples[i].event, 4);
    EXPECT_GE(samples[i].when.begin, before);
    EXPECT_LE(samples[i].when.end, agent::Now() + 1);
    EXPECT_LT(samples[i].when.Length(), kHz / 10);
  }
  const std::vector<StreamInfo> streams = (*opened)->Streams();
  ASSERT_THAT(streams, SizeIs(2));
  EXPECT_EQ(streams[1].kept, samples.size());
  // The last sample was taken when the agent was told to stop, after dom0 had ended the recording.
  EXPECT_EQ(streams[1].logged.Logged(), samples.size() + streams[1].invalid);
  EXPECT_LE(streams[1].invalid, 3U);
  EXPECT_TRUE(streams[1].complete && streams[1].Balanced());
  EXPECT_EQ((*opened)->Events()[0].period, 1'000'100u);
  EXPECT_TRUE((*opened)->Close().ok());
  EXPECT_THAT((*opened)->FinalNotes(), IsEmpty());
}

// An agent that takes a sample with a stack whenever it is asked for the time.
class StacksTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    request_.how.chains = true;
    request_.how.stack_bytes = 64;
  }
  // Opens a session with an agent of this minor version that says whether it sends stacks.
  absl::StatusOr<std::unique_ptr<AgentSource>> OpenAgent(uint16_t minor, bool sends) {
    return Open(Guest([this, minor, sends](Channel& channel) {
      agent::FakeAgent guest(GuestNow);
      guest.hello = GuestHello();
      guest.hello.minor = minor;
      recording::SourceInfo& perf = guest.ready_for.sources.emplace_back();
      perf.name = "perf";
      if (sends) perf.stacks.emplace();
      guest.sample = [] {
        return ChunksWithStacks({StackOf(7, AsBytes("piece of a stack"))},
                                {{0, sizeof(UserRegisters) + 16}}, GuestNow());
      };
      agent::Link link(channel);
      guest.Play(link, std::chrono::seconds(3));
      prepared_ = guest.prepared;
    }));
  }
  static std::string Notes(const AgentSource& source) {
    std::string all;
    for (const std::string& line : source.Notes()) all += line + "\n";
    return all;
  }
  void JoinAll() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::optional<agent::Prepare> prepared_;  // what the agent was asked for, after JoinAll
};

TEST_F(StacksTest, GetIntoTheRecordingWithTheirSamples) {
  auto opened = OpenAgent(agent::kMinor, true);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE((*opened)->Info().stacks) << "readers look for stacks while it records";
  const std::vector<Sample> samples = Record(**opened, milliseconds(100));
  ASSERT_GT(samples.size(), 3U);
  const auto file = MappedFile::Open(path_ + "/samples");
  auto reader = recording::SampleReader::Open(file->bytes(), 6);
  recording::ReadStackBlock block;
  size_t stacks = 0;
  while (reader->Next() != nullptr) {
    ASSERT_TRUE(reader->stack() && reader->stacks() != nullptr);
    ASSERT_TRUE(block.Read(*reader->stacks()).ok());
    const auto stack = block.At(*reader->stack());
    ASSERT_TRUE(stack);
    EXPECT_EQ(stack->registers[kRip], 7U);
    EXPECT_EQ(AsText(stack->bytes), "piece of a stack");
    ++stacks;
  }
  const auto info = (*opened)->Info().stacks;
  EXPECT_EQ(info->piece_bytes, 64U);
  EXPECT_EQ(info->pieces, stacks);
  EXPECT_EQ(info->left_out, 0U);
  EXPECT_TRUE((*opened)->Close().ok());
  EXPECT_THAT((*opened)->FinalNotes(), IsEmpty());
  JoinAll();
  EXPECT_EQ(prepared_->stack_bytes, 64U);
  EXPECT_LT(prepared_->all_stack_bytes, request_.limits.bytes) << "samples need room, too";
}

TEST_F(StacksTest, AreNotRequestedOfAnOlderAgent) {
  auto opened = OpenAgent(3, false);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Notes(**opened), HasSubstr("is too old for --call-graph dwarf"));
  EXPECT_FALSE((*opened)->Info().stacks);
  EXPECT_THAT(Record(**opened, milliseconds(50)), Not(IsEmpty())) << "samples come all the same";
  EXPECT_TRUE((*opened)->Close().ok());
  JoinAll();
  EXPECT_EQ(prepared_->stack_bytes, 0U);
}

TEST_F(StacksTest, AreSentAsTheOwnerAllows) {
  auto opened = OpenAgent(agent::kMinor, false);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Notes(**opened), HasSubstr("xenoscope agent --allow-stacks"));
  EXPECT_FALSE((*opened)->Info().stacks);
  EXPECT_TRUE((*opened)->Close().ok());
}

TEST_F(StacksTest, LargerThanRequestedAreRefused) {
  request_.how.stack_bytes = 8;
  auto opened = OpenAgent(agent::kMinor, true);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Record(**opened, milliseconds(50)), Not(IsEmpty()));
  EXPECT_TRUE((*opened)->Close().ok());
  EXPECT_THAT((*opened)->FinalNotes(), ElementsAre(HasSubstr("were refused as damaged, or larger "
                                                             "than 8 bytes")));
  EXPECT_EQ((*opened)->Info().stacks->pieces, 0U);
}

TEST_F(StacksTest, BeyondTheLimitAreLeftOut) {
  request_.limits.pending_stack_bytes = 100;
  auto opened = OpenAgent(agent::kMinor, true);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::vector<Sample> samples = Record(**opened, milliseconds(50));
  EXPECT_THAT(samples, Not(IsEmpty()));
  const auto info = (*opened)->Info().stacks;
  EXPECT_EQ(info->pieces, 0U);
  EXPECT_GE(info->left_out, samples.size()) << "those taken after the end, too";
  EXPECT_TRUE((*opened)->Close().ok());
}

// Guests without branch records use frame pointers for the same event.
TEST_F(AgentTest, GuestWithoutBranchRecordsUsesFramePointers) {
  request_.how.chains = true;
  request_.how.branch_records = true;
  request_.how.events = {"cycles"};
  parts_.open_source = [](const agent::Prepare& how,
                          const auto&) -> absl::StatusOr<std::unique_ptr<Source>> {
    if (how.branch_records) return absl::UnimplementedError("no branch records here");
    if (how.events.empty()) return absl::InternalError("the event is not the reason");
    return std::make_unique<FakeSource>();
  };
  const auto opened = Open(HonestGuest());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(
      (*opened)->Notes(),
      Contains(HasSubstr("no branch records here; its call chains follow frame pointers instead")));
  EXPECT_TRUE((*opened)->Close().ok());
}

// Readers merge the sources, each of which must be in order.
TEST_F(AgentTest, OrdersSamplesDespiteLateAnswers) {
  const auto opened = Open(Stranger([](agent::Link& link) {
    while (true) {
      auto message = link.Await(steady_clock::now() + std::chrono::seconds(3));
      if (!message.ok() || !*message) return;
      if (const auto* ping = std::get_if<agent::Ping>(&**message)) {
        const Tsc taken = GuestNow();
        std::this_thread::sleep_for(milliseconds(30));
        link.Queue(agent::Samples{ChunkOf({DomainId{3}, VcpuId{1}}, 0, 0, GuestNow())});
        link.Queue(agent::Samples{ChunkOf({DomainId{3}, VcpuId{0}}, 0, 0, taken)});
        link.Queue(agent::Pong{ping->number, GuestNow().value});
      }
      if (std::holds_alternative<agent::Stop>(**message)) link.Queue(agent::Account{"{}", true});
    }
  }));
  ASSERT_TRUE(opened.ok()) << opened.status();
  Tsc last;
  std::map<VcpuId, int> samples;
  for (const Sample& sample : Record(**opened, milliseconds(300))) {
    ++samples[sample.vcpu.vcpu];
    EXPECT_GE(sample.when.end, last);
    last = sample.when.end;
  }
  EXPECT_GT(samples[VcpuId{0}], 1);
  EXPECT_GT(samples[VcpuId{1}], 1);
  EXPECT_TRUE((*opened)->Close().ok());
}

// What is in the recording beside samples.
class AgentFilesTest : public AgentTest {
 protected:
  void TearDown() override {
    source_.reset();  // the agent ends with it
    AgentTest::TearDown();
  }
  void RecordAndSave() {
    auto opened = Open(HonestGuest());
    ASSERT_TRUE(opened.ok()) << opened.status();
    source_ = *std::move(opened);
    Record(*source_, milliseconds(1));
    auto writer = recording::Writer::Create(path_ + "/r.xeno");
    ASSERT_TRUE(writer.ok());
    writer_.emplace(*std::move(writer));
    ASSERT_TRUE(source_->Save(*writer_, info_).ok());
  }
  std::unique_ptr<AgentSource> source_;
  std::optional<recording::Writer> writer_;
  recording::RecordingInfo info_;
};

TEST_F(AgentFilesTest, RecordsKernelSymbolsUnlessGiven) {
  std::ofstream(path_ + "/perf-12.map") << "1000 20 run\n";
  RecordAndSave();
  ASSERT_THAT(info_.symbols, SizeIs(3));
  EXPECT_EQ(info_.symbols[0].path, "guests/3/kallsyms");
  EXPECT_EQ(info_.symbols[1].path, "guests/3/vdso");
  EXPECT_EQ(info_.symbols[2].path, "guests/3/perf-maps");
  EXPECT_EQ(std::filesystem::file_size(path_ + "/r.xeno/guests/3/perf-maps"),
            std::string_view("# 12\n1000 20 run\n").size());
  EXPECT_EQ(info_.symbols[0].domain, DomainId{3});
  EXPECT_EQ(std::filesystem::file_size(path_ + "/r.xeno/guests/3/kallsyms"),
            std::filesystem::file_size(parts_.kallsyms));
  EXPECT_THAT(source_->FinalNotes(), ElementsAre(HasSubstr("symbols")));
  ASSERT_TRUE(source_->Save(*writer_, info_).ok());
  EXPECT_THAT(info_.symbols, SizeIs(3));
}

TEST_F(AgentFilesTest, RecordsFunctionsOfProcessesThatEnded) {
  namespace fs = std::filesystem;
  const fs::path process = fs::path(parts_.proc) / "12";
  fs::create_directories(process / "root/tmp");
  std::ofstream(process / "status") << fmt::format(
      "Uid:\t{0}\t{0}\t{0}\t{0}\n"
      "Gid:\t{1}\t{1}\t{1}\t{1}\n",
      geteuid(), getegid());
  std::ofstream(process / "root/tmp/perf-12.map") << "1000 20 run\n";
  parts_.open_source = [&](const agent::Prepare&, const auto& perf_maps) {
    perf_maps->Add(12);
    perf_maps->Look();
    fs::remove_all(process);
    return std::make_unique<FakeSource>();
  };
  RecordAndSave();
  ASSERT_THAT(info_.symbols, SizeIs(3));
  EXPECT_EQ(std::filesystem::file_size(path_ + "/r.xeno/guests/3/perf-maps"),
            std::string_view("# 12\n1000 20 run\n").size());
}

TEST_F(AgentFilesTest, RecordsTheBootIfAskedFor) {
  const recording::FileHeader header;
  const auto bytes = std::as_bytes(std::span(&header, 1));
  parts_.boot_trace = std::vector<std::byte>(bytes.begin(), bytes.end());
  request_.boot = true;
  RecordAndSave();
  ASSERT_THAT(info_.symbols, SizeIs(3));
  EXPECT_EQ(info_.symbols[2].path, "guests/3/boot-trace");
  const auto file = MappedFile::Open(path_ + "/r.xeno/guests/3/boot-trace");
  ASSERT_TRUE(file.ok()) << file.status();
  auto chunks = recording::ChunkReader::Open(file->bytes());
  ASSERT_TRUE(chunks.ok()) << chunks.status();
  const auto answers = chunks->Next();
  ASSERT_TRUE(answers) << "those about its clock follow what the guest wrote";
  EXPECT_EQ(answers->header.kind, recording::ChunkKind::kClockAnswers);
  EXPECT_GT(answers->header.count, 0);
}

TEST_F(AgentFilesTest, SaysWhyThereIsNoBoot) {
  parts_.boot_trace = absl::FailedPreconditionError("its kernel did not record its boot");
  request_.boot = true;
  RecordAndSave();
  EXPECT_THAT(source_->FinalNotes(), Contains(HasSubstr("the trace of its boot: its kernel did")));
}

TEST_F(AgentFilesTest, SaysThatAnOlderAgentHasNoBoot) {
  parts_.hello.minor = 5;
  request_.boot = true;
  RecordAndSave();
  EXPECT_THAT(source_->FinalNotes(), Contains(HasSubstr("too old for record --boot")));
}

TEST_F(AgentFilesTest, DoesNotRequestUnknownFilesOfOlderAgent) {
  parts_.hello.minor = 1;
  RecordAndSave();
  EXPECT_THAT(info_.symbols, SizeIs(1));
}

TEST_F(AgentTest, SkipsUnnamedKernel) {
  for (const auto& [kernel, expected] :
       {std::pair("6.1", "its agent (xenoscope test, Linux 6.1) samples it"),
        std::pair("", "its agent (xenoscope test) samples it")}) {
    parts_.hello.kernel = kernel;
    const auto opened = Open(HonestGuest());
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT((*opened)->Notes(), ElementsAre(HasSubstr(expected)));
  }
}

TEST_F(AgentTest, ServesSeveralRecordingsInTurn) {
  for (int i = 0; i < 3; ++i) {
    const auto opened = Open(HonestGuest());
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT(Record(**opened, milliseconds(20)), ::testing::Not(IsEmpty()));
    std::filesystem::remove(path_ + "/samples");
    EXPECT_TRUE((*opened)->Close().ok());
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  EXPECT_EQ(served_, 3);
}

TEST_F(AgentTest, DomainWithoutAgentCannotBeActive) {
  struct Case {
    const char* what;
    AgentSource::Connect connect;
    const char* why;
  };
  parts_.open_source = [](const agent::Prepare&,
                          const auto&) -> absl::StatusOr<std::unique_ptr<Source>> {
    return absl::UnimplementedError("perf is forbidden");
  };
  const Case cases[] = {
      {"nothing listens", [](DomainId) { return absl::NotFoundError("no channel"); }, "no channel"},
      {"silence", Guest([](Channel&) { std::this_thread::sleep_for(milliseconds(700)); }),
       "did not answer within 500 ms"},
      {"it hangs up", Guest([](Channel&) {}), "closed"},
      {"another language", Guest([](Channel& channel) {
         EXPECT_TRUE(channel.Send(AsBytes("HTTP/1.1 400 Bad Request\r\n")).ok());
         std::this_thread::sleep_for(milliseconds(100));
       }),
       "no frame begins there"},
      {"another version", Guest([](Channel& channel) {
         agent::Link link(channel);
         agent::Hello hello = GuestHello();
         hello.major = 2;
         link.Queue(hello);
         EXPECT_TRUE(link.Pump(1).ok());
         std::this_thread::sleep_for(milliseconds(100));
       }),
       "speaks version 2"},
      {"it cannot sample", HonestGuest(), "perf is forbidden"},
  };
  for (const Case& each : cases) {
    const auto begun = steady_clock::now();
    const auto opened = Open(each.connect);
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(each.why)) << each.what;
    EXPECT_LT(steady_clock::now() - begun, milliseconds(2000)) << each.what;
  }
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): it loses track of the cases' functions

TEST_F(AgentTest, GuestWithoutEventUsesSubstitute) {
  parts_.open_source = [](const agent::Prepare& how,
                          const auto&) -> absl::StatusOr<std::unique_ptr<Source>> {
    if (!how.events.empty()) return absl::UnimplementedError("no counters for " + how.events[0]);
    return std::make_unique<FakeSource>();
  };
  request_.how.events = {"cycles:100000"};
  const auto opened = Open(HonestGuest());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT((*opened)->Notes().front(), HasSubstr("no counters for cycles:100000"));
  EXPECT_THAT((*opened)->Notes().front(), HasSubstr("samples cpu-clock instead"));
}

TEST_F(AgentTest, XenoprofMemberUsesEventsOfDom0) {
  parts_.open_source = [](const agent::Prepare& how,
                          const auto&) -> absl::StatusOr<std::unique_ptr<Source>> {
    EXPECT_EQ(how.source, agent::GuestSource::kXenoprof);
    return std::make_unique<FakeMember>();
  };
  request_.how.source = agent::GuestSource::kXenoprof;
  request_.how.events = {"cycles"};
  const auto opened = Open(HonestGuest());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE((*opened)->IsMember());
  EXPECT_THAT((*opened)->Notes(), ElementsAre(HasSubstr("takes part in xenoprof")));
  EXPECT_THAT((*opened)->Events(), IsEmpty());
  for (const bool again : {true, false}) {
    const auto enlisted = (*opened)->Enlist();
    ASSERT_TRUE(enlisted.ok()) << enlisted.status();
    EXPECT_EQ(*enlisted, again);
  }
  uint64_t in_xen = 0;
  const std::vector<Sample> samples = Record(**opened, milliseconds(100));
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.event, 0);
    in_xen += sample.mode == Mode::kXen ? 1 : 0;
  }
  EXPECT_GT(in_xen, 5u);
  EXPECT_EQ((*opened)->Streams()[0].kept, in_xen);
  EXPECT_TRUE((*opened)->Close().ok());
}

TEST_F(AgentTest, GuestWithoutXenoprofUsesPerf) {
  parts_.open_source = [](const agent::Prepare& how,
                          const auto&) -> absl::StatusOr<std::unique_ptr<Source>> {
    if (how.source == agent::GuestSource::kXenoprof) return absl::UnimplementedError("PV only");
    return std::make_unique<FakeSource>();
  };
  request_.how.source = agent::GuestSource::kXenoprof;
  const auto opened = Open(HonestGuest());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_FALSE((*opened)->IsMember());
  EXPECT_THAT((*opened)->Notes().front(), HasSubstr("PV only"));
  EXPECT_TRUE((*opened)->NumberEvents(0).ok());
  EXPECT_THAT((*opened)->Events(), SizeIs(1));
}

// Xen would wait for it: dom0 samples it instead.
TEST_F(AgentTest, GivesUpMemberThatDoesNotAnswer) {
  request_.limits.answer = milliseconds(100);
  request_.how.source = agent::GuestSource::kXenoprof;
  const auto opened = Open(Guest([](Channel& channel) {
    agent::FakeAgent guest(GuestNow);
    guest.ready_for.sources.push_back({"xenoprof", "", 0, 0});
    guest.ready_for.events = {{.name = "cycles", .period = 1, .clocked_by = "pmu"}};
    guest.is_mute = agent::Is<agent::Enlist>;
    agent::Link link(channel);
    guest.Play(link, milliseconds(800));
  }));
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE((*opened)->IsMember());
  const auto enlisted = (*opened)->Enlist();
  EXPECT_THAT(std::string(enlisted.status().message()), HasSubstr("does not take part"));
}

// A starved guest stays in the session, and the wait for it at the end is limited.
TEST_F(AgentTest, GivesUpSilentAgentOnlyAtTheEnd) {
  request_.limits.late = milliseconds(20);
  request_.limits.answer = milliseconds(50);
  const std::string told =
      AfterRecordingWith([](agent::Link&) { std::this_thread::sleep_for(milliseconds(500)); });
  EXPECT_THAT(told, HasSubstr("web: its agent was late once"));
  EXPECT_THAT(told, HasSubstr("it did not stop and give its accounts within 50 ms"));
}

TEST_F(AgentTest, DoesNotWaitForDestroyedDomain) {
  request_.limits.answer = std::chrono::minutes(1);
  // The guest's thread outlives this function.
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto opened = Open(Stranger([over](agent::Link& link) {
    link.Queue(agent::Samples{ChunkOf({}, 0, 0, GuestNow())});
    while (!*over) link.Await(steady_clock::now() + milliseconds(10)).IgnoreError();
  }));
  ASSERT_TRUE(opened.ok()) << opened.status();
  auto writer = recording::SampleWriter::InMemory();
  ASSERT_TRUE((*opened)->NumberEvents(0).ok());
  EXPECT_TRUE((*opened)->Start().ok());
  (*opened)->OnDomainDestroyed(DomainId{4});
  EXPECT_TRUE((*opened)->Collect(writer).ok());
  EXPECT_THAT((*opened)->FinalNotes(), IsEmpty());
  (*opened)->OnDomainDestroyed(DomainId{3});
  const auto begin = steady_clock::now();
  EXPECT_TRUE((*opened)->Stop(writer).ok());
  EXPECT_TRUE((*opened)->Close().ok());
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_THAT((*opened)->FinalNotes(), ElementsAre(HasSubstr("its domain has gone")));
  EXPECT_FALSE((*opened)->Streams()[0].complete);
  *over = true;
}

// A guest is destroyed: what its compilers wrote before that is there.
TEST_F(AgentTest, KeepsFunctionsOfDestroyedDomain) {
  request_.limits.answer = std::chrono::minutes(1);
  // The guest's thread outlives this function.
  const auto is_sent = std::make_shared<std::atomic<bool>>(false);
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto opened = Open(Stranger([is_sent, over](agent::Link& link) {
    auto chunks = recording::SampleWriter::InMemory();
    chunks.AppendPerfMaps(kDom0, "# 12\n1000 20 run\n");
    chunks.AppendPerfMaps(kDom0, "# 12\n2000 20 later\n");
    link.Queue(agent::Samples{chunks.Take()});
    while (!*over) {
      link.Await(steady_clock::now() + milliseconds(10)).IgnoreError();
      *is_sent = link.Queued() == 0;
    }
  }));
  ASSERT_TRUE(opened.ok()) << opened.status();
  auto writer = recording::SampleWriter::InMemory();
  ASSERT_TRUE((*opened)->NumberEvents(0).ok());
  EXPECT_TRUE((*opened)->Start().ok());
  while (!*is_sent) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE((*opened)->Collect(writer).ok());
  (*opened)->OnDomainDestroyed(DomainId{3});
  EXPECT_TRUE((*opened)->Stop(writer).ok());
  const auto to = recording::Writer::Create(path_ + "/r.xeno");
  ASSERT_TRUE(to.ok()) << to.status();
  recording::RecordingInfo info;
  EXPECT_TRUE((*opened)->Save(*to, info).ok());
  ASSERT_THAT(info.symbols, SizeIs(1));
  EXPECT_EQ(info.symbols[0].path, "guests/3/perf-maps");
  std::ifstream file(path_ + "/r.xeno/guests/3/perf-maps");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "# 12\n1000 20 run\n# 12\n2000 20 later\n");
  *over = true;
}

// A source whose kernel always has more events of threads, as that of a guest that only switches.
class EndlessEvents final : public FakeSource {
 public:
  absl::Status Collect(recording::SampleWriter& writer) override {
    XENOSCOPE_RETURN_IF_ERROR(FakeSource::Collect(writer));
    const size_t room = std::min(writer.room(), kMost) / (kPage + sizeof(recording::ChunkHeader));
    if (room == 0) return absl::OkStatus();
    const Tsc now = GuestNow();
    writer.AppendTracePages({kDom0, VcpuId{1}}, {now, now, now}, kPage,
                            std::vector<std::byte>(room * kPage));
    return absl::OkStatus();
  }
  bool HasMore() const override { return true; }
  std::vector<recording::KernelTraceInfo> KernelTraces() const override {
    return {{.source = "ftrace", .vcpu = {kDom0, VcpuId{1}}, .read = 5, .lost = 7}};
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kMost = size_t{8} << 20;  // of one Collect
};

TEST_F(AgentTest, StaysThoughItsGuestHasMoreThanItCanSend) {
  parts_.open_source = [](const agent::Prepare&, const auto&) {
    return std::make_unique<EndlessEvents>();
  };
  request_.how.threads = true;
  request_.limits.ping_interval = milliseconds(200);
  request_.limits.answer = std::chrono::seconds(20);
  const auto opened = Open(HonestGuest());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::vector<Sample> samples = Record(**opened, milliseconds(600));
  EXPECT_TRUE((*opened)->session().status().ok()) << (*opened)->session().status();
  EXPECT_THAT((*opened)->FinalNotes(), IsEmpty());
  ASSERT_THAT((*opened)->KernelTraces(), SizeIs(1));
  EXPECT_EQ((*opened)->KernelTraces()[0].lost, 7u);
  EXPECT_GT(samples.size(), 10u);
  EXPECT_TRUE((*opened)->Close().ok());
}

TEST_F(AgentTest, KeepsSamplesOfKilledAgent) {
  EXPECT_THAT(AfterRecordingWith([](agent::Link& link) {
                link.Queue(agent::Samples{ChunkOf({}, 0, 0, GuestNow())});
                while (true) {
                  auto message = link.Await(steady_clock::now() + std::chrono::seconds(3));
                  ASSERT_TRUE(message.ok() && *message);
                  const auto* ping = std::get_if<agent::Ping>(&**message);
                  if (ping == nullptr) continue;
                  link.Queue(agent::Pong{ping->number, GuestNow().value});
                  EXPECT_TRUE(link.Pump(1).ok());
                  return;
                }
              }),
              HasSubstr("given up"));
  EXPECT_THAT(samples_, SizeIs(1));
  EXPECT_FALSE(streams_[0].complete);
  EXPECT_EQ(streams_[0].kept, 1u);
}

TEST_F(AgentTest, DisconnectsAgentThatSendsTooMuch) {
  request_.limits.bytes = 1 << 20;
  request_.limits.pending_bytes = 1 << 19;
  const auto babble = [](agent::Link& link) {
    const std::vector<std::byte> chunk = ChunkOf({}, 0, 0, GuestNow());
    std::vector<std::byte> chunks;  // many, so that it is fast with sanitizers, too
    while (chunks.size() < agent::kMaxPayload / 2) {
      chunks.insert(chunks.end(), chunk.begin(), chunk.end());
    }
    for (bool open = true; open;) {
      link.Queue(agent::Samples{chunks});
      open = link.Pump(1).ok();
    }
  };
  EXPECT_THAT(AfterRecordingWith(babble), HasSubstr("faster than"));
  request_.limits.pending_bytes = size_t{1} << 30;
  std::filesystem::remove(path_ + "/samples");
  EXPECT_THAT(AfterRecordingWith(babble), HasSubstr("more than 1 MB"));
}

TEST_F(AgentTest, CountsImpossibleSamples) {
  const auto lie = [](agent::Link& link) {
    const Tsc now = GuestNow();
    for (const auto& chunk :
         // Another domain: the guest's is taken anyway.
         {ChunkOf({DomainId{9}, VcpuId{0}}, 0, 0, now),
          ChunkOf({DomainId{3}, VcpuId{2}}, 0, 0, now),  // a vCPU that the guest does not have
          ChunkOf({DomainId{3}, VcpuId{0}}, 2, 0, now),  // in Xen
          ChunkOf({DomainId{3}, VcpuId{0}}, 0, 1, now),  // an event that the guest does not have
          ChunkOf({DomainId{3}, VcpuId{0}}, 0, 0, now + 60 * kHz),  // in the future
          ChunkOf({DomainId{3}, VcpuId{0}}, 0, 0, Tsc{0}),          // long past
          std::vector<std::byte>(10, std::byte{1})}) {
      link.Queue(agent::Samples{chunk});
    }
    while (true) {
      auto message = link.Await(steady_clock::now() + std::chrono::seconds(1));
      if (!message.ok() || !*message) return;
      if (const auto* ping = std::get_if<agent::Ping>(&**message)) {
        link.Queue(agent::Pong{ping->number, GuestNow().value});
      }
      if (std::holds_alternative<agent::Stop>(**message)) link.Queue(agent::Account{"", true});
    }
  };
  EXPECT_THAT(AfterRecordingWith(lie), HasSubstr("accounts: "));
  ASSERT_THAT(samples_, SizeIs(1));
  EXPECT_EQ(samples_[0].vcpu, (VcpuRef{DomainId{3}, VcpuId{0}}));
}

TEST_F(AgentTest, UnexpectedMessageEndsSession) {
  const AnyMessage unasked[] = {agent::Pong{99, 1}, agent::FilePart{}, agent::Hello{},
                                agent::Bye{},       agent::Ping{1},    agent::Prepared{"{}"},
                                agent::Enlisted{},  agent::Enlist{}};
  for (const AnyMessage& message : unasked) {
    std::filesystem::remove(path_ + "/samples");
    EXPECT_THAT(AfterRecordingWith([&](agent::Link& link) {
                  link.Queue(message);
                  EXPECT_TRUE(link.Pump(1).ok());
                  std::this_thread::sleep_for(milliseconds(50));
                }),
                HasSubstr("given up"))
        << message.index();
  }
}

TEST_F(AgentTest, AgentRequiresHello) {
  Ends ends = Connected();
  agent::Link link(*ends.first);
  link.Queue(agent::Start{});
  ASSERT_TRUE(link.Pump(1).ok());
  agent::Server server(*ends.second, parts_);
  EXPECT_THAT(std::string(server.Serve(kNoFile).message()), HasSubstr("no hello"));
  EXPECT_FALSE(server.greeted());
}

}  // namespace
}  // namespace xenoscope::sampler
