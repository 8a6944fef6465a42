// The order of a session's operations with a simulated Xen: whatever happens, it does not crash and
// everything is given back.
#include "sampler/xenoprof/xenoprof_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "recording/sample_reader.h"
#include "tests/unit/sampler/fake_xen.h"

namespace xenoscope::sampler {
namespace {

using recording::Entry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const XenoprofSession::Domains kPassive{
    .passive = {DomainId{1}, DomainId{2}}, .active = {}, .enlist = {}};
const std::array kCycles{PmuEvent{"cycles", 0x76, 0, 100000}};

struct Found {
  VcpuRef vcpu;
  Address address;
  TscRange bracket;
};

class XenoprofSessionTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<XenoprofSession>> Open() {
    return XenoprofSession::Open(xen_, kPassive, 64, [this] { return Tsc{++tsc_}; });
  }
  // Returns a session that profiles, clocked by NMIs from outside.
  std::unique_ptr<XenoprofSession> Profiling() {
    auto session = Open();
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Program(kCycles, 0).ok());
    EXPECT_TRUE((*session)->Start(&clock_).ok());
    return *std::move(session);
  }
  XenoprofSession::Sink Sink() {
    return [this](const XenoprofBuffers::Drained& drained) {
      for (const Entry& entry : drained.entries) {
        found_.push_back(
            {drained.vcpu, entry.address, {drained.times.previous_before, drained.times.after}});
      }
      Write(drained);
    };
  }
  // Samples with callers go through a file, as they do in a recording. Each test has its own file,
  // since tests run in parallel.
  void Write(const XenoprofBuffers::Drained& drained) {
    if (drained.with_callers.empty()) return;
    const std::string path = ::testing::TempDir() + "xenoprof_session_test." +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::remove(path.c_str());
    auto writer = recording::SampleWriter::Create(path);
    ASSERT_TRUE(writer.ok());
    writer->Append(drained.vcpu.domain, drained.with_callers);
    ASSERT_TRUE(writer->Flush().ok());
    const auto mapped = MappedFile::Open(path);
    auto reader = recording::SampleReader::Open(mapped->bytes(), 6);
    while (const auto sample = reader->Next()) {
      std::string text = fmt::format("{} {} {:x}", ToString(sample->vcpu), ToString(sample->mode),
                                     sample->address);
      for (size_t i = 0; i < sample->callers.size(); ++i) {
        text +=
            fmt::format(" <- {} {:x}", ToString(sample->callers.ModeAt(i)), sample->callers.at(i));
      }
      chains_.push_back(std::move(text));
    }
    EXPECT_FALSE(reader->damage().Any());
    std::remove(path.c_str());
  }
  // Returns a session with call chains.
  std::unique_ptr<XenoprofSession> Following() {
    auto session = Open();
    EXPECT_TRUE((*session)->Program(kCycles, 8).ok());
    EXPECT_TRUE((*session)->Start(nullptr).ok());  // the counters alone
    return *std::move(session);
  }
  static recording::StreamInfo Dom0Stream(const XenoprofSession& session) {
    return session.Streams().front();
  }
  void ExpectAllGivenBack() {
    EXPECT_EQ(xen_.Crash(), "");
    EXPECT_FALSE(xen_.AnythingMapped());
    EXPECT_FALSE(xen_.AnythingShared());
    EXPECT_FALSE(xen_.AnythingHeld());
    EXPECT_EQ(xen_.state(), FakeXen::State::kInitialized);
  }

  FakeXen xen_{{{0, 1}, {1, 1}, {2, 2}}};
  FakeClock clock_{xen_};
  uint64_t tsc_ = 1000;
  std::vector<Found> found_;
  std::vector<std::string> chains_;
};

TEST_F(XenoprofSessionTest, SessionReleasesEverything) {
  auto session = Profiling();
  ASSERT_TRUE(session->Stop(Sink()).ok());
  ASSERT_TRUE(session->Close().ok());
  EXPECT_EQ(session->state(), XenoprofSession::State::kClosed);
  ExpectAllGivenBack();
}

TEST_F(XenoprofSessionTest, DestructorReleasesEverythingInAnyState) {
  Open()->reset();
  ExpectAllGivenBack();
  {
    auto session = Open();
    ASSERT_TRUE((*session)->Program(kCycles, 0).ok());
  }
  ExpectAllGivenBack();
  Profiling().reset();
  ExpectAllGivenBack();
  {
    auto session = Profiling();
    ASSERT_TRUE(session->Stop(Sink()).ok());
  }
  ExpectAllGivenBack();
  EXPECT_TRUE(Profiling()->Close().ok());  // the next session works
  ExpectAllGivenBack();
}

TEST_F(XenoprofSessionTest, RecoversKilledSessionInAnyState) {
  // A killed process runs no destructors. The sessions stay reachable, for the leak checker.
  static auto& killed = *new std::vector<XenoprofSession*>;
  for (int stage = 0; stage < 4; ++stage) {
    auto session = Open();
    ASSERT_TRUE(session.ok()) << session.status();
    if (stage >= 1) {
      ASSERT_TRUE((*session)->Program(kCycles, 0).ok());
    }
    if (stage >= 2) {
      ASSERT_TRUE((*session)->Start(nullptr).ok());
    }
    if (stage >= 3) {
      ASSERT_TRUE((*session)->Stop(Sink()).ok());
    }
    xen_.ProcessDies();
    killed.push_back(session->release());

    XenoprofSession::Recover(xen_);
    ExpectAllGivenBack();
    EXPECT_TRUE(Profiling()->Close().ok()) << stage;
    ExpectAllGivenBack();
  }
}

TEST_F(XenoprofSessionTest, RecoveryWithoutRemainsDoesNothing) {
  XenoprofSession::Recover(xen_);
  XenoprofSession::Recover(xen_);
  EXPECT_TRUE(Profiling()->Close().ok());
  ExpectAllGivenBack();
}

TEST_F(XenoprofSessionTest, ProgramsAllCountersAndDisablesUnused) {
  auto session = Profiling();
  ASSERT_EQ(xen_.programmed().size(), 6);
  for (const auto& [index, counter] : xen_.programmed()) {
    EXPECT_EQ(counter.enabled, index == 0 ? 1 : 0);
    EXPECT_EQ(counter.count, index == 0 ? 100000 : 0);
  }
  EXPECT_EQ(xen_.programmed().at(0).event, 0x76);
}

TEST_F(XenoprofSessionTest, KeepsOnlySamplesOfProgrammedCounters) {
  auto session = Profiling();  // the clock adds one NMI at its start and one at its end
  xen_.Nmi(1, 0, Mode::kUser, 0x10);
  xen_.Nmi(2, 1, Mode::kKernel, 0x20);
  session->Drain(Sink());
  xen_.Nmi(2, 1, Mode::kUser, 0x30);
  ASSERT_TRUE(session->Stop(Sink()).ok());
  const auto streams = session->Streams();
  ASSERT_EQ(streams.size(), 4);
  for (const auto& stream : streams) {
    EXPECT_TRUE(stream.complete);
    EXPECT_TRUE(stream.Balanced()) << ToString(stream.vcpu);
  }
  EXPECT_EQ(streams[3].vcpu, (VcpuRef{DomainId{2}, VcpuId{1}}));
  EXPECT_EQ(streams[3].kept, 2);
  EXPECT_EQ(streams[3].other_counters, 10);
  EXPECT_EQ(streams[3].logged.user, 6);
  ASSERT_EQ(found_.size(), 5);
  EXPECT_EQ(found_[0].address, 1);
  EXPECT_EQ(found_[1].address, 0x10);
  EXPECT_EQ(found_[2].address, 0x20);
}

TEST_F(XenoprofSessionTest, BracketsCoverTimeSinceLastDrain) {
  auto session = Profiling();
  session->Drain(Sink());
  found_.clear();
  const Tsc between{tsc_};
  xen_.Nmi(1, 0, Mode::kUser, 0x10);
  session->Drain(Sink());
  ASSERT_EQ(found_.size(), 1);
  EXPECT_LT(found_[0].bracket.begin, between);
  EXPECT_GT(found_[0].bracket.end, between);
  EXPECT_GE(found_[0].bracket.begin, session->sampled().begin);
}

TEST_F(XenoprofSessionTest, CountsSamplesLostInFullBuffer) {
  auto session = Profiling();
  for (int i = 0; i < 20; ++i) xen_.Nmi(1, 0, Mode::kUser, 0x10);
  ASSERT_TRUE(session->Stop(Sink()).ok());
  const auto stream = session->Streams()[1];
  EXPECT_EQ(stream.drained, 63);  // a ring holds one less than its size
  EXPECT_EQ(stream.logged.lost, 20 * 6 - 63);
  EXPECT_TRUE(stream.Balanced());
}

TEST_F(XenoprofSessionTest, RingWraps) {
  auto session = Profiling();
  for (Address i = 0; i < 200; ++i) {
    xen_.Nmi(1, 0, Mode::kUser, 0x1000 + i);
    session->Drain(Sink());
  }
  ASSERT_TRUE(session->Stop(Sink()).ok());
  std::erase_if(found_, [](const Found& f) { return f.vcpu.domain != DomainId{1}; });
  ASSERT_EQ(found_.size(), 200);
  for (size_t i = 0; i < found_.size(); ++i) EXPECT_EQ(found_[i].address, 0x1000 + i);
}

TEST_F(XenoprofSessionTest, CountsEscapes) {
  auto session = Profiling();
  session->Drain(Sink());
  found_.clear();
  xen_.Log(1, 0, Mode::kUser, kEscapeCode, kTraceBegin);
  session->Drain(Sink());
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(session->Streams()[1].escapes, 1);
}

TEST_F(XenoprofSessionTest, ProbeReservesNothing) {
  const auto processor = XenoprofSession::Probe(xen_);
  ASSERT_TRUE(processor.ok()) << processor.status();
  EXPECT_EQ(*processor, "x86-64/family15h");
  ExpectAllGivenBack();
  EXPECT_TRUE(Profiling()->Close().ok());  // it blocks no other session
  xen_.init_error = -ENOSYS;
  EXPECT_TRUE(absl::IsUnimplemented(XenoprofSession::Probe(xen_).status()));
}

TEST_F(XenoprofSessionTest, ErrorsHaveARemedy) {
  xen_.init_error = -ENOSYS;
  EXPECT_THAT(std::string(Message(Open().status())), HasSubstr("built without it"));
  xen_.init_error = -ENODEV;
  EXPECT_THAT(std::string(Message(Open().status())), HasSubstr("processor"));
  xen_.init_error = 0;
  xen_.primary = false;
  EXPECT_THAT(std::string(Message(Open().status())), HasSubstr("record in dom0"));
  xen_.primary = true;
  xen_.get_buffer_error = -EBUSY;
  EXPECT_THAT(std::string(Message(Open().status())), HasSubstr("vpmu"));
  xen_.get_buffer_error = 0;
  xen_.reserve_error = -EBUSY;
  EXPECT_THAT(std::string(Message((*Open())->Program(kCycles, 0))), HasSubstr("watchdog"));
  xen_.reserve_error = 0;
  EXPECT_EQ(xen_.Crash(), "");
  EXPECT_TRUE(Profiling()->Close().ok());
  ExpectAllGivenBack();
}

TEST_F(XenoprofSessionTest, MissingDomainIsAnErrorThatReleasesEverything) {
  const XenoprofSession::Domains gone{
      .passive = {DomainId{1}, DomainId{9}}, .active = {}, .enlist = {}};
  const auto session = XenoprofSession::Open(xen_, gone, 64, [] { return Tsc{1}; });
  EXPECT_EQ(session.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(session.status())), HasSubstr("domain 9"));
  ExpectAllGivenBack();
}

TEST_F(XenoprofSessionTest, RefusesMoreEventsThanCounters) {
  auto session = Open();
  const std::vector<PmuEvent> events(7, kCycles[0]);
  EXPECT_THAT(std::string(Message((*session)->Program(events, 0))), HasSubstr("6 counters"));
}

TEST_F(XenoprofSessionTest, RefusesMoreThan25PassiveDomains) {
  const XenoprofSession::Domains many{
      .passive = std::vector(26, DomainId{1}), .active = {}, .enlist = {}};
  EXPECT_THAT(
      std::string(Message(XenoprofSession::Open(xen_, many, 64, [] { return Tsc{1}; }).status())),
      HasSubstr("--passive"));
}

TEST_F(XenoprofSessionTest, ResetsActiveListFirst) {
  Profiling().reset();
  EXPECT_THAT(std::vector(xen_.ops().begin(), xen_.ops().begin() + 4),
              ElementsAre(XenoprofOp::kInit, XenoprofOp::kGetBuffer, XenoprofOp::kResetActiveList,
                          XenoprofOp::kSetActive));
}

// The fake must crash where Xen does, or the tests above prove nothing.
TEST_F(XenoprofSessionTest, FakeXenCrashesLikeXen) {
  auto session = Profiling();
  xen_.Call(XenoprofOp::kStop, {});
  xen_.Call(XenoprofOp::kDisableVirq, {});
  EXPECT_THAT(xen_.Crash(), HasSubstr("mapped"));
  FakeXen other(std::map<uint16_t, int>{{0, 1}});
  FakeClock clock(other);
  auto second = XenoprofSession::Open(other, XenoprofSession::Domains{}, 64, [] { return Tsc{1}; });
  ASSERT_TRUE((*second)->Program(kCycles, 0).ok());
  ASSERT_TRUE((*second)->Start(&clock).ok());
  other.ProcessDies();
  other.Call(XenoprofOp::kStop, {});
  other.Call(XenoprofOp::kReleaseCounters, {});
  EXPECT_THAT(other.Crash(), HasSubstr("while NMIs come"));
}

TEST_F(XenoprofSessionTest, ChainsExtendFromEscapeToEscape) {
  auto session = Following();
  xen_.frames = {{Mode::kKernel, 0x20}, {Mode::kUser, 0x30}};
  xen_.Nmi(0, 0, Mode::kKernel, 0x10);
  xen_.frames = {};
  xen_.Nmi(0, 0, Mode::kUser, 0x11);
  ASSERT_TRUE(session->Stop(Sink()).ok());
  EXPECT_THAT(chains_, ElementsAre("d0v0 kernel 10 <- kernel 20 <- user 30", "d0v0 user 11"));
  EXPECT_TRUE(found_.empty());
  const recording::StreamInfo stream = Dom0Stream(*session);
  EXPECT_EQ(stream.escapes, 12U);  // six counters, two NMIs
  EXPECT_EQ(stream.callers, 12U);
  EXPECT_EQ(stream.other_counters, 10U);
  EXPECT_EQ(stream.kept, 2U);
  EXPECT_TRUE(stream.Balanced());
}

TEST_F(XenoprofSessionTest, CallersBehindADrainAreNoSamples) {
  auto session = Following();
  xen_.Put(0, 0, {kEscapeCode, 0, kTraceBegin, {}});
  xen_.Log(0, 0, Mode::kUser, 0x10, 0);
  session->Drain(Sink());
  xen_.Put(0, 0, {0x20, 0, 0, {}});
  ASSERT_TRUE(session->Stop(Sink()).ok());
  EXPECT_THAT(chains_, ElementsAre("d0v0 user 10"));
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(Dom0Stream(*session).callers, 1U);
  EXPECT_TRUE(Dom0Stream(*session).Balanced());
}

TEST_F(XenoprofSessionTest, DropsCallersOutOfOrder) {
  auto session = Following();
  xen_.frames = {{Mode::kXen, 0x20}, {Mode::kUser, 0x30}, {Mode::kKernel, 0x40}};
  xen_.Nmi(0, 0, Mode::kXen, 0x10);
  ASSERT_TRUE(session->Stop(Sink()).ok());
  EXPECT_THAT(chains_, ElementsAre("d0v0 xen 10 <- xen 20 <- user 30"));
}

TEST_F(XenoprofSessionTest, BacktraceIsOffWithoutCallers) {
  auto session = Following();
  ASSERT_TRUE(session->Close().ok());
  EXPECT_EQ(xen_.backtrace_depth(), 8);
  session = Profiling();
  EXPECT_EQ(xen_.backtrace_depth(), 0);
}

TEST_F(XenoprofSessionTest, RefusesXenWithoutBacktraceOnlyForCallers) {
  xen_.backtrace_error = -ENOSYS;
  auto session = Open();
  EXPECT_THAT(std::string(Message((*session)->Program(kCycles, 8))), HasSubstr("without -g"));
  EXPECT_TRUE((*session)->Program(kCycles, 0).ok());
}

TEST_F(XenoprofSessionTest, CountsSamplesOfOtherModes) {
  auto session = Open();
  PmuEvent event{"cycles", 0x76, 0, 100000};
  event.kernel = event.hypervisor = false;
  ASSERT_TRUE((*session)->Program({&event, 1}, 0).ok());
  EXPECT_EQ(xen_.programmed().at(0).user, 1U);
  EXPECT_EQ(xen_.programmed().at(0).kernel, 0U);
  ASSERT_TRUE((*session)->Start(nullptr).ok());
  xen_.Nmi(0, 0, Mode::kUser, 0x10);
  xen_.Nmi(0, 0, Mode::kKernel, 0x20);  // of a PV kernel: in ring 3 too
  ASSERT_TRUE((*session)->Stop(Sink()).ok());
  ASSERT_EQ(found_.size(), 1U);
  EXPECT_EQ(found_[0].address, 0x10U);
  EXPECT_EQ(Dom0Stream(**session).other_modes, 1U);
  EXPECT_TRUE(Dom0Stream(**session).Balanced());
}

}  // namespace
}  // namespace xenoscope::sampler
