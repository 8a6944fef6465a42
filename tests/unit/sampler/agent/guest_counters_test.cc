// Counters of a guest that its agent reads: of an honest one, and what a hostile one can do.
#include "sampler/agent/guest_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "sampler/agent/agent_server.h"
#include "sampler/agent/fd_channel.h"
#include "tests/unit/sampler/agent/fake_agent.h"
#include "tests/unit/sampler/fake_perf.h"

namespace xenoscope::sampler {
namespace {

using agent::AnyMessage;
using agent::Counts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GuestCountersTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (std::thread& thread : threads_) thread.join();
  }

  // Returns counters of two events in a guest with two vCPUs, in which `play` has the agent's end
  // of the channel.
  absl::StatusOr<GuestCounters> Open(const std::function<void(Channel&)>& play) {
    const auto connect = [&](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
      int fds[2] = {-1, -1};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
      threads_.emplace_back(
          [play, channel = std::make_shared<FdChannel>(fds[1])] { play(*channel); });
      return std::make_unique<FdChannel>(fds[0]);
    };
    return GuestCounters::Open(domain_, {"page-faults,cycles"}, 2, connect,
                               {.read_tsc = agent::Now});
  }

  // Returns the counters of an agent with these answers.
  absl::StatusOr<GuestCounters> OpenWith(
      std::function<std::vector<AnyMessage>(const agent::Count&)> counts,
      uint16_t minor = agent::kMinor) {
    return Open([counts = std::move(counts), minor](Channel& channel) {
      agent::FakeAgent guest(agent::Now);
      guest.hello.minor = minor;
      guest.counts = counts;
      agent::Link link(channel);
      guest.Play(link, std::chrono::seconds(20));
    });
  }

  // Returns the error of starting, or of the next counts, of an agent whose first counts are 100,
  // and whose later ones are these.
  std::string ErrorAfter(const Counts& later) {
    auto counters = OpenWith([later](const agent::Count& count) -> std::vector<AnyMessage> {
      if (count.events.empty()) return {later};
      return {Counts{true, {"", ""}, {{0, 0, 100, 100, 100}}}};
    });
    EXPECT_TRUE(counters.ok()) << counters.status();
    EXPECT_TRUE(counters->Start().ok());
    return std::string(Message(counters->Next().status()));
  }

  recording::DomainInfo domain_{.id = DomainId{3},
                                .name = "web",
                                .type = recording::DomainType::kPvh,
                                .role = recording::Role::kNone,
                                .vcpus = 2};
  std::vector<std::thread> threads_;
};

TEST_F(GuestCountersTest, CountsSinceTheLastCall) {
  FakeKernel kernel;  // without hardware counters
  agent::ServerParts parts;
  parts.hello = agent::FakeAgent(agent::Now).hello;
  parts.read_tsc = agent::Now;
  parts.open_counters = [&kernel](const std::vector<std::string>& texts) {
    return PerfCounters::Open(*ParseEventSpecs(texts), CounterScope::kCpus,
                              std::make_unique<FakePerf>(kernel));
  };
  {
    auto counters = Open([&parts](Channel& channel) {
      agent::Server server(channel, parts);
      EXPECT_TRUE(server.Serve(kNoFile).ok());
      EXPECT_TRUE(server.said_bye());
    });
    ASSERT_TRUE(counters.ok()) << counters.status();
    kernel.timed = {10, 100, 100};
    const absl::Status started = counters->Start();
    ASSERT_TRUE(started.ok()) << started;
    EXPECT_THAT(counters->obstacles(), ElementsAre("", HasSubstr("cycles")));
    kernel.timed = {17, 300, 150};
    counters->KeepAlive();
    const auto counts = counters->Next();
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_THAT(*counts,
                ElementsAre(CounterReading{0, 0, 7, 200, 50}, CounterReading{0, 1, 7, 200, 50}));
    const auto again = counters->Next();
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->front().count, 0U);
    ASSERT_TRUE(counters->Start().ok());  // begins anew
    kernel.timed = {20, 400, 250};
    EXPECT_EQ(counters->Next()->front().count, 3U);
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  EXPECT_TRUE(kernel.open.empty());  // the counters have ended with the session
}

TEST_F(GuestCountersTest, SaysWhyGuestCannotCount) {
  auto old = OpenWith(nullptr, /*minor=*/2);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_THAT(std::string(old->Start().message()), HasSubstr("too old to count events"));
  auto refusing = OpenWith([](const agent::Count&) -> std::vector<AnyMessage> {
    return {agent::Failed{"no\nperf here"}};
  });
  ASSERT_TRUE(refusing.ok()) << refusing.status();
  EXPECT_THAT(std::string(refusing->Start().message()), HasSubstr("cannot count: no?perf here"));
  auto few = OpenWith([](const agent::Count&) -> std::vector<AnyMessage> {
    return {Counts{true, {""}, {}}};
  });
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_THAT(std::string(few->Start().message()), HasSubstr("counts 1 events"));
}

TEST_F(GuestCountersTest, RefusesCountsThatCannotBe) {
  EXPECT_EQ(ErrorAfter({true, {"", ""}, {{0, 0, 100, 100, 100}}}), "");
  EXPECT_THAT(ErrorAfter({true, {"", ""}, {{0, 0, 99, 100, 100}}}), HasSubstr("smaller"));
  EXPECT_THAT(ErrorAfter({true, {"", ""}, {{0, 1, 200, 200, 200}}}), HasSubstr("other vCPUs"));
  EXPECT_THAT(ErrorAfter({true, {"", ""}, {}}), HasSubstr("other vCPUs"));
  EXPECT_THAT(ErrorAfter({true, {"", ""}, {{0, 2, 200, 200, 200}}}), HasSubstr("no reply"));
  EXPECT_THAT(ErrorAfter({true, {"", ""}, {{2, 0, 200, 200, 200}}}), HasSubstr("no reply"));
  EXPECT_THAT(ErrorAfter({true, {"", ""}, std::vector<CounterReading>(5)}),
              HasSubstr("more counts than"));
}

TEST_F(GuestCountersTest, RefusesMoreThanAnAgentCounts) {
  const auto connect = [](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
    return absl::UnavailableError("not to be called");
  };
  const agent::Host host{.read_tsc = agent::Now};
  EXPECT_TRUE(absl::IsInvalidArgument(
      GuestCounters::Open(domain_, {"cycles"}, agent::kMaxEvents + 1, connect, host).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      GuestCounters::Open(domain_, {std::string(agent::kMaxText + 1, 'a')}, 1, connect, host)
          .status()));
}

}  // namespace
}  // namespace xenoscope::sampler
