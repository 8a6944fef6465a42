// Active domains of xenoprof with a simulated Xen: whichever process dies or does not come,
// recordings go on, Xen does not crash, and the next recording gives back what was left.
#include "sampler/xenoprof/xenoprof_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "sampler/xenoprof/xenoprof_session.h"
#include "tests/unit/sampler/fake_xen.h"

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DomainId kWeb{1};
constexpr DomainId kDb{2};
constexpr uint64_t kHz = 1'000'000'000;
const std::vector kMemberCycles{PmuEvent{"cycles", 0x76, 0, 100000}};

class XenoprofMemberTest : public ::testing::Test {
 protected:
  std::unique_ptr<XenoprofMember> Agent(DomainId domain) {
    auto member = XenoprofMember::Open(std::make_unique<FakeXen::Guest>(xen_, domain.value), {},
                                       kHz, [this] { return Tsc{++tsc_}; });
    EXPECT_TRUE(member.ok()) << member.status();
    return *std::move(member);
  }
  // Returns dom0's session with these agents.
  std::unique_ptr<XenoprofSession> Lead(const std::map<DomainId, XenoprofMember*>& agents,
                                        std::vector<DomainId> passive = {}) {
    XenoprofSession::Domains domains;
    domains.passive = std::move(passive);
    for (const auto& [domain, agent] : agents) domains.active.push_back(domain);
    domains.enlist = [agents](DomainId domain) -> absl::StatusOr<bool> {
      XenoprofMember* const agent = agents.at(domain);
      if (agent == nullptr) return absl::DeadlineExceededError("it is silent");
      return agent->Enlist();
    };
    auto session = XenoprofSession::Open(xen_, domains, 64, [this] { return Tsc{++tsc_}; });
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Program(kMemberCycles, 0).ok());
    return *std::move(session);
  }
  void ExpectAllGivenBack() {
    EXPECT_EQ(xen_.Crash(), "");
    EXPECT_FALSE(xen_.AnythingMapped());
    EXPECT_FALSE(xen_.AnythingShared());
    EXPECT_FALSE(xen_.AnythingHeld());
  }
  // Expects that a whole recording with the domain as a member works, and leaves nothing.
  void ExpectItCanTakePart(DomainId domain) {
    const auto agent = Agent(domain);
    const auto session = Lead({{domain, agent.get()}});
    EXPECT_THAT(session->active(), ElementsAre(domain));
    ASSERT_TRUE(agent->Start().ok());
    ASSERT_TRUE(session->Start(nullptr).ok());
    ASSERT_TRUE(session->Stop(Nowhere()).ok());
    EXPECT_TRUE(agent->Stop(writer_).ok());
    EXPECT_TRUE(agent->Close().ok());
    EXPECT_TRUE(session->Close().ok());
    ExpectAllGivenBack();
  }
  static XenoprofSession::Sink Nowhere() {
    return [](const XenoprofBuffers::Drained&) {};
  }

  FakeXen xen_{{{0, 1}, {1, 1}, {2, 2}}};
  uint64_t tsc_ = 1000;
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
};

TEST_F(XenoprofMemberTest, DrainsSamplesOfEveryMode) {
  const auto agent = Agent(kDb);
  const auto session = Lead({{kDb, agent.get()}}, {kWeb});
  EXPECT_THAT(session->active(), ElementsAre(kDb));
  EXPECT_THAT(session->passive(), ElementsAre(kWeb));
  ASSERT_TRUE(agent->Start().ok());
  ASSERT_TRUE(session->Start(nullptr).ok());
  for (const Mode mode : {Mode::kUser, Mode::kKernel, Mode::kXen}) xen_.Nmi(2, 1, mode, 0x10);
  xen_.Nmi(1, 0, Mode::kUser, 0x20);
  ASSERT_TRUE(agent->Collect(writer_).ok());
  xen_.Nmi(2, 0, Mode::kUser, 0x30);
  ASSERT_TRUE(session->Stop(Nowhere()).ok());
  ASSERT_TRUE(agent->Stop(writer_).ok());
  EXPECT_TRUE(agent->Close().ok());
  const auto streams = agent->Streams();
  ASSERT_THAT(streams, SizeIs(2));
  EXPECT_EQ(streams[0].kept, 1U);
  EXPECT_EQ(streams[1].kept, 3U);
  EXPECT_EQ(streams[1].other_counters, 15U);
  EXPECT_EQ(streams[1].logged.xen, 6U);
  EXPECT_TRUE(streams[1].complete && streams[1].Balanced());
  EXPECT_EQ(session->Streams().back().kept, 1U);  // of the passive one; no domain is sampled twice
  EXPECT_TRUE(session->Close().ok());
  ExpectAllGivenBack();
}

// The word to start takes its time to the guest, which must also get a processor.
TEST_F(XenoprofMemberTest, AccountsForSamplesBeforeStart) {
  const auto agent = Agent(kWeb);
  const auto session = Lead({{kWeb, agent.get()}});
  ASSERT_TRUE(session->Start(nullptr).ok());
  xen_.Nmi(1, 0, Mode::kUser, 0x10);
  ASSERT_TRUE(agent->Start().ok());
  xen_.Nmi(1, 0, Mode::kUser, 0x20);
  ASSERT_TRUE(session->Stop(Nowhere()).ok());
  ASSERT_TRUE(agent->Stop(writer_).ok());
  EXPECT_EQ(agent->Streams()[0].kept, 2U);
  EXPECT_EQ(agent->Streams()[0].logged.user, 12U);
  EXPECT_TRUE(agent->Streams()[0].Balanced());
}

TEST_F(XenoprofMemberTest, RolesMayChangeBetweenRecordings) {
  for (int i = 0; i < 2; ++i) {
    ExpectItCanTakePart(kWeb);
    auto session = Lead({}, {kWeb});
    EXPECT_THAT(session->passive(), ElementsAre(kWeb));
    session.reset();
    ExpectAllGivenBack();
  }
}

// Xen releases only domains that have come: what it holds of this one goes with the domain's
// remains.
TEST_F(XenoprofMemberTest, MissingMemberBecomesPassive) {
  const auto agent = Agent(kDb);
  const auto session = Lead({{kWeb, nullptr}, {kDb, agent.get()}});
  EXPECT_THAT(session->active(), ElementsAre(kDb));
  EXPECT_THAT(session->passive(), ElementsAre(kWeb));
  ASSERT_THAT(session->refused(), SizeIs(1));
  EXPECT_EQ(session->refused()[0].domain, kWeb);
  EXPECT_THAT(std::string(session->refused()[0].reason.message()), HasSubstr("silent"));
  ASSERT_TRUE(agent->Start().ok());
  EXPECT_TRUE(session->Start(nullptr).ok());
  ASSERT_TRUE(session->Stop(Nowhere()).ok());
  EXPECT_TRUE(agent->Stop(writer_).ok());
  EXPECT_TRUE(agent->Close().ok());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(xen_.Crash(), "");
  EXPECT_FALSE(xen_.AnythingShared());
}

TEST_F(XenoprofMemberTest, NextAgentRecoversKilledOne) {
  auto agent = Agent(kWeb);
  auto session = Lead({{kWeb, agent.get()}});
  ASSERT_TRUE(agent->Start().ok());
  ASSERT_TRUE(session->Start(nullptr).ok());
  xen_.ProcessDies(kWeb.value);
  static auto& killed = *new std::vector<XenoprofMember*>;  // no destructor runs
  killed.push_back(agent.release());
  for (int i = 0; i < 20; ++i) xen_.Nmi(1, 0, Mode::kUser, 0x10);  // Xen logs on
  ASSERT_TRUE(session->Stop(Nowhere()).ok());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(xen_.Crash(), "");
  EXPECT_FALSE(xen_.AnythingHeld());

  // Its buffers are still its own: dom0 goes on without it, and says so.
  session = Lead({}, {kWeb, kDb});
  EXPECT_THAT(session->passive(), ElementsAre(kDb));
  ASSERT_THAT(session->left_out(), SizeIs(1));
  EXPECT_THAT(std::string(session->left_out()[0].reason.message()), HasSubstr("in use"));
  EXPECT_TRUE(session->Close().ok());

  ExpectItCanTakePart(kWeb);
}

TEST_F(XenoprofMemberTest, RecoversKilledRecorderWithMembersInAnyState) {
  static auto& killed = *new std::vector<XenoprofSession*>;
  for (int stage = 0; stage < 3; ++stage) {
    const auto agent = Agent(kWeb);
    auto session = Lead({{kWeb, agent.get()}}, {kDb});
    ASSERT_TRUE(agent->Start().ok());
    if (stage >= 1) {
      ASSERT_TRUE(session->Start(nullptr).ok());
    }
    if (stage >= 2) {
      ASSERT_TRUE(session->Stop(Nowhere()).ok());
    }
    xen_.ProcessDies();
    killed.push_back(session.release());
    // The agent finds its recorder gone. It cannot leave while Xen still profiles it.
    EXPECT_TRUE(agent->Stop(writer_).ok());
    EXPECT_EQ(agent->Close().ok(), stage != 1) << stage;
    XenoprofSession::Recover(xen_);
    EXPECT_EQ(xen_.Crash(), "");
    EXPECT_FALSE(xen_.AnythingHeld());
    ExpectItCanTakePart(kWeb);
  }
}

TEST_F(XenoprofMemberTest, DuplicateMemberIsAnErrorThatReleasesEverything) {
  const auto agent = Agent(kWeb);
  const auto session = Lead({{kWeb, agent.get()}});
  FakeXen::Guest(xen_, kWeb.value).Call(XenoprofOp::kEnableVirq);
  EXPECT_THAT(std::string(session->Start(nullptr).message()), HasSubstr("--agent-source"));
  EXPECT_TRUE(agent->Close().ok());
  EXPECT_TRUE(session->Close().ok());
  ExpectAllGivenBack();
}

TEST_F(XenoprofMemberTest, RefusesUnlistedMember) {
  const auto agent = Agent(kWeb);
  EXPECT_FALSE(agent->Enlist().ok());
  EXPECT_FALSE(agent->Close().ok());  // Xen keeps its buffers for it
  ExpectItCanTakePart(kWeb);
}

TEST_F(XenoprofMemberTest, WorksWithoutMembers) {
  const auto session = Lead({});
  EXPECT_THAT(session->active(), IsEmpty());
  EXPECT_TRUE(session->Start(nullptr).ok());
  EXPECT_TRUE(session->Close().ok());
  ExpectAllGivenBack();
}

TEST_F(XenoprofMemberTest, ErrorHasARemedyWithoutHypercalls) {
  xen_.init_error = -EPERM;
  const auto member = XenoprofMember::Open(std::make_unique<FakeXen::Guest>(xen_, 1), {}, kHz,
                                           [] { return Tsc{1}; });
  EXPECT_THAT(std::string(Message(member.status())), HasSubstr("unrestricted=1"));
}

}  // namespace
}  // namespace xenoscope::sampler
