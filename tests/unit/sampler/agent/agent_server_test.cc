// The guest's side of a recording, with recorders that ask for much and read nothing, in simulated
// time.
#include "sampler/agent/agent_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace xenoscope::sampler::agent {
namespace {

using std::chrono::minutes;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

// A recorder that says hello, then the same message for ever, and reads only so many bytes of
// answers.
class FakeRecorder final : public Channel {
 public:
  FakeRecorder(const AnyMessage& again, size_t takes) : again_(Encode(again)), takes_(takes) {}

  absl::StatusOr<size_t> Send(Bytes bytes) override {
    const size_t n = std::min(bytes.size(), takes_);
    takes_ -= n;
    return n;
  }
  absl::StatusOr<size_t> Receive(std::span<std::byte> into) override {
    if (coming_.empty()) coming_ = again_;
    const size_t n = std::min(into.size(), coming_.size());
    std::copy_n(coming_.begin(), n, into.begin());
    coming_.erase(coming_.begin(), coming_.begin() + static_cast<std::ptrdiff_t>(n));
    heard += n;
    return n;
  }
  void Wait(bool /*to_send*/, steady_clock::time_point /*until*/, int /*other*/) override {}

  uint64_t heard = 0;  // bytes that the server received

 private:
  std::vector<std::byte> coming_ = Encode(Hello{});
  std::vector<std::byte> again_;
  size_t takes_;
};

// Whatever the recorder asks for, a server whose answers it does not read stops reading, and ends
// in time.
TEST(AgentServer, BoundsMemoryWhenRecorderDoesNotRead) {
  const AnyMessage wishes[] = {Ping{1},
                               Want{FileKind::kKallsyms},
                               Want{FileKind::kPerfMaps},
                               agent::Stop{},
                               Prepare{},
                               agent::Start{},
                               agent::Count{{"cycles"}}};
  for (const AnyMessage& wish : wishes) {
    ServerParts parts;
    parts.kallsyms = "/proc/self/maps";
    parts.proc = parts.tmp = "/nowhere";
    parts.open_source = [](const Prepare&, const auto&) -> absl::StatusOr<std::unique_ptr<Source>> {
      return absl::UnimplementedError("none here");
    };
    parts.open_counters = [](const std::vector<std::string>&) -> absl::StatusOr<PerfCounters> {
      return absl::UnimplementedError("none here");
    };
    parts.read_tsc = [] { return Tsc{1}; };
    steady_clock::time_point now;
    parts.now = [&now] { return now += minutes(3); };
    FakeRecorder recorder(wish, 1000);
    Server server(recorder, parts);
    EXPECT_THAT(std::string(server.Serve(kNoFile).message()),
                HasSubstr("the recorder said nothing for 5 minutes"));
    EXPECT_FALSE(server.said_bye());
    EXPECT_LT(recorder.heard, size_t{8} << 20) << wish.index();
  }
}

// What is shared is bounded, too, and given to the owner as one.
TEST(AgentServer, BoundsWhatIsShared) {
  ServerParts parts;
  bool kept = false;
  parts.keep_shared = [&kept](Bytes /*bytes*/) {
    kept = true;
    return absl::OkStatus();
  };
  steady_clock::time_point now;
  parts.now = [&now] { return now; };
  FakeRecorder recorder(Share{false, std::vector<std::byte>(kMaxPayload / 2)}, 1000);
  Server server(recorder, parts);
  EXPECT_THAT(std::string(server.Serve(kNoFile).message()), HasSubstr("shares more than 4 MB"));
  EXPECT_FALSE(kept);
  EXPECT_LT(recorder.heard, size_t{5} << 20);
}

// What a busy guest has: samples, which cannot wait, and pages of its kernel's trace, which can.
struct Busy {
  const char* what;
  size_t samples;       // bytes of samples that the first Collect hands on
  size_t pages;         // pages that there are in all
  size_t most_between;  // bytes that come between two answers at most
  bool says_dropped;    // samples were dropped, and the agent says so
  bool has_left;        // pages are left when the source is closed
};
constexpr size_t kMB = size_t{1} << 20;
constexpr size_t kPage = 4096;

// What became of the pages of a source, which the source does not outlive.
struct PagesLeft {
  size_t now = 0;
  size_t at_close = 0;
};

class BusySource final : public Source {
 public:
  // `signal`: a file that it writes to at the first Collect.
  BusySource(const Busy& busy, PagesLeft& left, int signal = kNoFile)
      : busy_(busy), left_(left), signal_(signal) {
    left_.now = busy.pages;
  }
  recording::SourceInfo Info() const override { return {"busy", "", 0, 0}; }
  std::vector<recording::EventInfo> Events() const override { return {}; }
  recording::Role RoleOf(DomainId /*domain*/) const override { return recording::Role::kActive; }
  absl::Status Start() override { return absl::OkStatus(); }
  steady_clock::time_point Due() const override { return due_; }
  absl::Status Collect(recording::SampleWriter& writer) override {
    due_ = steady_clock::time_point::max();  // from now on as it has more only
    if (signal_ != kNoFile) eventfd_write(std::exchange(signal_, kNoFile), 1);
    const size_t samples = std::exchange(busy_.samples, 0);
    const std::vector<recording::Entry> entries(samples / sizeof(recording::Entry));
    writer.Append({kDom0, VcpuId{0}}, {Tsc{1}, Tsc{1}, Tsc{2}}, entries);
    const size_t room = writer.room() / (kPage + sizeof(recording::ChunkHeader));
    const std::vector<std::byte> pages(std::min(room, left_.now) * kPage);
    has_more_ = room < left_.now;
    left_.now -= pages.size() / kPage;
    if (pages.empty()) return absl::OkStatus();
    writer.AppendTracePages({kDom0, VcpuId{0}}, {Tsc{1}, Tsc{1}, Tsc{2}}, kPage, pages);
    return absl::OkStatus();
  }
  bool HasMore() const override { return has_more_; }
  absl::Status OnDomainCreated(const recording::DomainInfo& /*domain*/) override {
    return absl::UnimplementedError("");
  }
  absl::Status Stop(recording::SampleWriter& writer) override { return Collect(writer); }
  absl::Status Close() override {
    left_.at_close = left_.now;
    return absl::OkStatus();
  }
  TscRange Sampled() const override { return {}; }
  std::vector<recording::StreamInfo> Streams() const override { return {}; }

 private:
  Busy busy_;
  PagesLeft& left_;
  int signal_;
  bool has_more_ = false;
  steady_clock::time_point due_;
};

// A recorder that records until three answers have come, and asks only when the agent waits: so as
// much as can be comes between two answers.
class SlowRecorder final : public Channel {
 public:
  absl::StatusOr<size_t> Send(Bytes bytes) override {
    reader_.Add(bytes);
    while (true) {
      const auto message = reader_.Next();
      EXPECT_TRUE(message.ok()) << message.status();
      if (!message.ok() || !*message) return bytes.size();
      if (const auto* samples = std::get_if<Samples>(&**message)) {
        between_ += samples->chunks.size();
        most_between = std::max(most_between, between_);
        all += samples->chunks.size();
      } else if (std::holds_alternative<Pong>(**message)) {
        between_ = 0;
        ++answers_;
      } else if (std::holds_alternative<Account>(**message)) {
        Say(Bye{});
      } else if (const auto* failed = std::get_if<Failed>(&**message)) {
        complaints.push_back(failed->why);
      }
    }
  }
  absl::StatusOr<size_t> Receive(std::span<std::byte> into) override {
    const size_t n = std::min(into.size(), coming_.size());
    std::copy_n(coming_.begin(), n, into.begin());
    coming_.erase(coming_.begin(), coming_.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void Wait(bool /*to_send*/, steady_clock::time_point /*until*/, int /*other*/) override {
    constexpr uint64_t kAnswers = 3;
    if (answers_ == kAnswers && !std::exchange(stopped_, true)) return Say(agent::Stop{});
    Say(Ping{++asked_});
  }

  size_t all = 0;  // bytes of chunks
  size_t most_between = 0;
  std::vector<std::string> complaints;

 private:
  static std::vector<std::byte> Greeting() {
    std::vector<std::byte> all;
    for (const AnyMessage& message :
         {AnyMessage(Hello{}), AnyMessage(Prepare{}), AnyMessage(agent::Start{})}) {
      const std::vector<std::byte> frame = Encode(message);
      all.insert(all.end(), frame.begin(), frame.end());
    }
    return all;
  }
  void Say(const AnyMessage& message) {
    const std::vector<std::byte> frame = Encode(message);
    coming_.insert(coming_.end(), frame.begin(), frame.end());
  }

  std::vector<std::byte> coming_ = Greeting();
  FrameReader reader_;
  size_t between_ = 0;
  uint64_t asked_ = 0;
  uint64_t answers_ = 0;
  bool stopped_ = false;
};

// However much a guest has, its agent sends no more between two answers than a recorder takes.
TEST(AgentServer, KeepsToTheLimitBetweenAnswers) {
  const Busy kCases[] = {
      {"little", kMB, 100, 8 * kMB, false, false},
      {"events of threads in plenty", 0, 60 * kMB / kPage, 8 * kMB, false, false},
      {"both", 3 * kMB, 40 * kMB / kPage, 8 * kMB, false, false},
      {"as many samples as a recorder takes", 15 * kMB, 100, 16 * kMB, false, false},
      {"more samples", 17 * kMB, 100, 16 * kMB, true, false},
      {"too much is left at the end", 0, 200 * kMB / kPage, 8 * kMB, false, true},
  };
  for (const Busy& busy : kCases) {
    PagesLeft left;
    ServerParts parts;
    parts.open_source = [&](const Prepare&, const auto&) {
      return std::make_unique<BusySource>(busy, left);
    };
    parts.read_tsc = [] { return Tsc{1}; };
    steady_clock::time_point now;
    parts.now = [&now] { return now += std::chrono::microseconds(1); };
    SlowRecorder recorder;
    Server server(recorder, parts);
    EXPECT_TRUE(server.Serve(kNoFile).ok()) << busy.what;
    EXPECT_TRUE(server.said_bye()) << busy.what;
    EXPECT_LE(recorder.most_between, busy.most_between) << busy.what;
    EXPECT_EQ(recorder.complaints.size(), busy.says_dropped ? 1 : 0) << busy.what;
    EXPECT_EQ(left.at_close > 0, busy.has_left) << busy.what;
    EXPECT_GE(recorder.all, (busy.pages - left.at_close) * kPage) << busy.what;
  }
}

// An agent that init ends, as its guest shuts down, sends what it has first.
TEST(AgentServer, SendsWhatIsLeftWhenASignalEndsIt) {
  PagesLeft left;
  const int end = eventfd(0, EFD_CLOEXEC);
  constexpr Busy kBusy{"ended", 0, 30 * kMB / kPage, 8 * kMB, false, false};
  ServerParts parts;
  parts.open_source = [&](const Prepare&, const auto&) {
    return std::make_unique<BusySource>(kBusy, left, end);
  };
  parts.read_tsc = [] { return Tsc{1}; };
  steady_clock::time_point now;
  parts.now = [&now] { return now += std::chrono::microseconds(1); };
  SlowRecorder recorder;
  Server server(recorder, parts);
  EXPECT_TRUE(server.Serve(end).ok());
  close(end);
  EXPECT_EQ(left.at_close, 0U);
  EXPECT_GE(recorder.all, kBusy.pages * kPage);
  ASSERT_EQ(recorder.complaints.size(), 1U);
  EXPECT_THAT(recorder.complaints[0], HasSubstr("a signal ended it"));
}

TEST(AgentServer, ReportsBye) {
  FakeRecorder recorder(Bye{}, size_t{1} << 20);
  const ServerParts parts;
  Server server(recorder, parts);
  EXPECT_TRUE(server.Serve(kNoFile).ok());
  EXPECT_TRUE(server.greeted() && server.said_bye());
}

}  // namespace
}  // namespace xenoscope::sampler::agent
