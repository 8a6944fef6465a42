// What dom0 shares with a guest: with an honest agent over a socket, and with guests that do not
// take it.
#include "sampler/agent/send_shared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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

namespace xenoscope::sampler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

class SendSharedTest : public ::testing::Test {
 protected:
  SendSharedTest() {
    parts_.hello = agent::FakeAgent(agent::Now).hello;
    parts_.read_tsc = agent::Now;
    request_.limits.share = milliseconds(300);
  }
  void TearDown() override { Join(); }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Sends the bytes to a guest in which `play` has the agent's end of the channel. It offers the
  // channel when it has been asked for it `refusals` times.
  absl::Status Send(const std::vector<std::byte>& bytes, const std::function<void(Channel&)>& play,
                    int refusals = 0) {
    const auto connect = [&](DomainId domain) -> absl::StatusOr<std::unique_ptr<Channel>> {
      EXPECT_EQ(domain, DomainId{3});
      if (refusals-- > 0) return NotFoundError("it offers no channel");
      int fds[2] = {-1, -1};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
      threads_.emplace_back([play, fd = fds[1]] {
        FdChannel channel(fd);
        play(channel);
      });
      return std::make_unique<FdChannel>(fds[0]);
    };
    return SendShared(domain_, bytes, connect, {.read_tsc = agent::Now}, request_);
  }
  absl::Status SendToServer(const std::vector<std::byte>& bytes, int refusals = 0) {
    return Send(
        bytes,
        [this](Channel& channel) {
          agent::Server server(channel, parts_);
          EXPECT_TRUE(server.Serve(kNoFile).ok());
          EXPECT_TRUE(server.said_bye());
        },
        refusals);
  }

  const recording::DomainInfo domain_{.id = DomainId{3},
                                      .name = "web",
                                      .type = recording::DomainType::kPvh,
                                      .role = recording::Role::kNone,
                                      .vcpus = 2};
  AgentRequest request_;
  agent::ServerParts parts_;
  std::vector<std::thread> threads_;
};

std::vector<std::byte> ManyBytes(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  return bytes;
}

TEST_F(SendSharedTest, AgentKeepsAllOfIt) {
  std::vector<std::byte> kept;
  parts_.keep_shared = [&kept](Bytes bytes) {
    kept.assign(bytes.begin(), bytes.end());
    return absl::OkStatus();
  };
  request_.limits.share = seconds(30);
  for (const size_t size : {size_t{1}, agent::kMaxPayload, agent::kMaxSharedBytes}) {
    const std::vector<std::byte> bytes = ManyBytes(size);
    const absl::Status sent = SendToServer(bytes);
    EXPECT_TRUE(sent.ok()) << sent;
    Join();
    EXPECT_EQ(kept, bytes);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(SendToServer(ManyBytes(agent::kMaxSharedBytes + 1))));
  EXPECT_EQ(kept.size(), agent::kMaxSharedBytes);
}

// An agent that has just served a recording offers its next channel a little later.
TEST_F(SendSharedTest, WaitsForTheChannel) {
  parts_.keep_shared = [](Bytes /*bytes*/) { return absl::OkStatus(); };
  EXPECT_TRUE(SendToServer(ManyBytes(10), 3).ok());
}

TEST_F(SendSharedTest, SaysWhyAGuestKeepsNothing) {
  EXPECT_THAT(std::string(SendToServer(ManyBytes(10)).message()),
              HasSubstr("its owner keeps nothing that is shared"));
  parts_.keep_shared = [](Bytes /*bytes*/) { return ExhaustedError("the disk is full"); };
  EXPECT_THAT(std::string(SendToServer(ManyBytes(10)).message()), HasSubstr("the disk is full"));
  parts_.hello.minor = 8;
  EXPECT_THAT(std::string(SendToServer(ManyBytes(10)).message()), HasSubstr("too old"));
}

TEST_F(SendSharedTest, GivesUpAGuestThatStalls) {
  const auto begin = steady_clock::now();
  const absl::Status sent = Send(ManyBytes(1 << 20), [](Channel& channel) {
    agent::FakeAgent guest(agent::Now);
    agent::Link link(channel);
    // It greets, and reads nothing of what is shared.
    guest.Play(link, seconds(20), [](const agent::AnyMessage& message) {
      return agent::Is<agent::Ping>(message) && std::get<agent::Ping>(message).number >= 16;
    });
    std::this_thread::sleep_for(seconds(1));
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(sent)) << sent;
  EXPECT_LT(steady_clock::now() - begin, seconds(10));
}

TEST_F(SendSharedTest, GivesUpAGuestThatDiesInTheMiddle) {
  const absl::Status sent = Send(ManyBytes(1 << 20), [](Channel& channel) {
    agent::FakeAgent guest(agent::Now);
    agent::Link link(channel);
    guest.Play(link, seconds(20),
               [](const agent::AnyMessage& message) { return agent::Is<agent::Share>(message); });
  });
  EXPECT_FALSE(sent.ok());
  EXPECT_FALSE(absl::IsDeadlineExceeded(sent)) << sent;
}

// A process that a guest has taken over may say that all was sent, and nothing else.
TEST_F(SendSharedTest, GivesUpAProcessThatEnds) {
  const auto connect = [](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    close(fds[1]);
    return std::make_unique<FdChannel>(fds[0]);
  };
  const absl::Status sent =
      SendShared(domain_, ManyBytes(10), connect, {.read_tsc = agent::Now}, request_,
                 [](int /*control*/, int /*data*/, const recording::DomainInfo& /*domain*/,
                    const AgentRequest& /*request*/, const agent::Host& /*host*/) {});
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
}

}  // namespace
}  // namespace xenoscope::sampler
