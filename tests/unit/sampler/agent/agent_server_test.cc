// The guest's side of a recording, with recorders that ask for much and read nothing, in simulated
// time.
#include "sampler/agent/agent_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    parts.open_source = [](const Prepare&) -> absl::StatusOr<std::unique_ptr<Source>> {
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

TEST(AgentServer, ReportsBye) {
  FakeRecorder recorder(Bye{}, size_t{1} << 20);
  const ServerParts parts;
  Server server(recorder, parts);
  EXPECT_TRUE(server.Serve(kNoFile).ok());
  EXPECT_TRUE(server.greeted() && server.said_bye());
}

}  // namespace
}  // namespace xenoscope::sampler::agent
