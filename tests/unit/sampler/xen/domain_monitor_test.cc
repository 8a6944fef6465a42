// The changes that a monitor of domains finds on simulated hosts.
#include "sampler/xen/domain_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace xenoscope::sampler {
namespace {

using recording::DomainChange;
using recording::DomainInfo;
using recording::RecordingInfo;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using Kind = DomainChange::Kind;

constexpr DomainId kWeb{1};
constexpr DomainId kDb{2};

struct FakeGuest {
  DomainState state{.online_vcpus = 2, .max_vcpus = 2};
  std::set<uint32_t> online{0, 1};
};

// The guests that exist, by domain; dom0 always does.
using Host = std::map<DomainId, FakeGuest>;

class FakeDirectory final : public DomainDirectory {
 public:
  explicit FakeDirectory(const Host& host) : host_(host) {}
  absl::StatusOr<std::vector<DomainInfo>> List() override {
    ++lists;
    std::vector<DomainInfo> domains;
    for (const DomainId id : Ids()) {
      DomainInfo& domain = domains.emplace_back();
      domain.id = id;
      domain.name = name;
      domain.type = recording::DomainType::kPv;
      domain.vcpus = vcpus;
    }
    return domains;
  }
  std::set<DomainId> Ids() override {
    if (silent) return {};
    std::set<DomainId> ids{kDom0};
    for (const auto& [id, guest] : host_) ids.insert(id);
    return ids;
  }
  std::optional<uint32_t> DeviceModelOf(DomainId /*id*/) override { return std::nullopt; }
  bool OffersAgent(DomainId /*id*/) override { return false; }
  bool silent = false;
  std::string name = "guest";  // of all
  uint32_t vcpus = 2;
  int lists = 0;

 private:
  const Host& host_;
};

class FakeVcpuCalls final : public VcpuCalls {
 public:
  explicit FakeVcpuCalls(const Host& host) : host_(host) {}
  int Domain(DomainId domain, DomainState& state) override {
    const auto found = host_.find(domain);
    if (found != host_.end()) state = found->second.state;
    return found != host_.end() || domain == kDom0 ? 0 : -ESRCH;
  }
  int State(VcpuRef vcpu, VcpuState& state) override {
    state.online = host_.at(vcpu.domain).online.contains(vcpu.vcpu.value);
    return 0;
  }
  int Context(VcpuRef /*vcpu*/, VcpuContext& /*context*/) override { return -ENOSYS; }
  int Affinity(VcpuRef /*vcpu*/, std::vector<uint32_t>& /*pcpus*/) override { return -ENOSYS; }

 private:
  const Host& host_;
};

class DomainMonitorTest : public ::testing::Test {
 protected:
  void SetUp() override { info_.domains = *directory_.List(); }
  DomainMonitor Monitor(bool with_calls = true) {
    std::unique_ptr<VcpuCalls> calls;
    if (with_calls) calls = std::make_unique<FakeVcpuCalls>(host_);
    return {directory_, std::move(calls), [this] { return Tsc{tsc_ += 100}; }};
  }
  // Returns the changes since the last call.
  std::vector<DomainChange> NewChanges(DomainMonitor& monitor) {
    info_.changes.clear();
    monitor.Poll(info_);
    return info_.changes;
  }

  Host host_{{kWeb, {}}, {kDb, {}}};
  FakeDirectory directory_{host_};
  RecordingInfo info_;
  uint64_t tsc_ = 0;
};

TEST_F(DomainMonitorTest, InitialDomainsAreNoChange) {
  host_[kWeb].state.paused = true;
  DomainMonitor monitor = Monitor();
  EXPECT_THAT(NewChanges(monitor), IsEmpty());
  EXPECT_THAT(NewChanges(monitor), IsEmpty());
}

TEST_F(DomainMonitorTest, ChangeIsBetweenTwoPolls) {
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);  // at 100
  host_[kWeb].state.paused = true;
  EXPECT_THAT(NewChanges(monitor),
              ElementsAre(DomainChange{Kind::kPaused, kWeb, std::nullopt, {Tsc{100}, Tsc{201}}}));
  host_[kWeb].state.paused = false;
  EXPECT_THAT(NewChanges(monitor),
              ElementsAre(DomainChange{Kind::kUnpaused, kWeb, std::nullopt, {Tsc{200}, Tsc{301}}}));
}

TEST_F(DomainMonitorTest, ReportsCreationAndDestructionOnce) {
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);
  host_.erase(kDb);
  host_[DomainId{7}] = {};
  EXPECT_THAT(
      NewChanges(monitor),
      ElementsAre(DomainChange{Kind::kCreated, DomainId{7}, std::nullopt, {Tsc{100}, Tsc{201}}},
                  DomainChange{Kind::kDestroyed, kDb, std::nullopt, {Tsc{100}, Tsc{201}}}));
  EXPECT_TRUE(info_.Domain(kDb)->died);
  EXPECT_NE(info_.Domain(DomainId{7}), nullptr);
  EXPECT_THAT(NewChanges(monitor), IsEmpty());
}

TEST_F(DomainMonitorTest, DyingDomainIsDestroyed) {
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);
  host_[kWeb].state.dying = true;
  EXPECT_THAT(
      NewChanges(monitor),
      ElementsAre(DomainChange{Kind::kDestroyed, kWeb, std::nullopt, {Tsc{100}, Tsc{201}}}));
}

TEST_F(DomainMonitorTest, ReportsVcpuHotplug) {
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);
  host_[kWeb].online = {0};
  host_[kWeb].state.online_vcpus = 1;
  EXPECT_THAT(NewChanges(monitor),
              ElementsAre(DomainChange{Kind::kVcpuOffline, kWeb, VcpuId{1}, {Tsc{100}, Tsc{201}}}));
  host_[kWeb].online = {0, 1};
  host_[kWeb].state.online_vcpus = 2;
  EXPECT_THAT(NewChanges(monitor),
              ElementsAre(DomainChange{Kind::kVcpuOnline, kWeb, VcpuId{1}, {Tsc{200}, Tsc{301}}}));
}

// A guest may do so for ever; important changes, and those of others, are reported all the same.
TEST_F(DomainMonitorTest, CountsChangesBeyondLimit) {
  DomainMonitor monitor = Monitor();
  monitor.Poll(info_);
  for (uint32_t i = 0; i < DomainMonitor::kMaxChanges + 9; ++i) {
    const bool off = i % 2 == 0;
    host_[kWeb].online = off ? std::set<uint32_t>{0} : std::set<uint32_t>{0, 1};
    host_[kWeb].state.online_vcpus = off ? 1 : 2;
    monitor.Poll(info_);
  }
  EXPECT_EQ(info_.changes.size(), DomainMonitor::kMaxChanges);
  EXPECT_EQ(info_.Domain(kWeb)->changes_left_out, 9U);
  host_[kDb].state.paused = true;
  host_.erase(kWeb);
  EXPECT_THAT(NewChanges(monitor), ElementsAre(Field(&DomainChange::kind, Kind::kDestroyed),
                                               Field(&DomainChange::kind, Kind::kPaused)));
}

TEST_F(DomainMonitorTest, ReportsShutdownReason) {
  const std::pair<uint8_t, Kind> reasons[] = {
      {0, Kind::kPoweredOff}, {1, Kind::kRebooted}, {2, Kind::kSuspended}, {3, Kind::kCrashed}};
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);
  for (const auto& [reason, kind] : reasons) {
    host_[kWeb].state.shutdown = true;
    host_[kWeb].state.shutdown_reason = reason;
    std::vector<DomainChange> news = NewChanges(monitor);
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].kind, kind);
    host_[kWeb].state.shutdown = false;
    news = NewChanges(monitor);
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].kind, Kind::kResumed);
  }
}

TEST_F(DomainMonitorTest, UsesXenstoreWithoutHypercalls) {
  DomainMonitor monitor = Monitor(/*with_calls=*/false);
  NewChanges(monitor);
  host_[kWeb].state.paused = true;
  EXPECT_THAT(NewChanges(monitor), IsEmpty());
  host_.erase(kWeb);
  const std::vector<DomainChange> news = NewChanges(monitor);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].kind, Kind::kDestroyed);
}

TEST_F(DomainMonitorTest, XenstoreFailureIsNoChange) {
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);
  directory_.silent = true;
  EXPECT_THAT(NewChanges(monitor), IsEmpty());
}

TEST_F(DomainMonitorTest, ReadsLateXenstoreEntries) {
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);
  host_[DomainId{7}] = {};
  directory_.name = "";
  directory_.vcpus = 0;
  NewChanges(monitor);
  EXPECT_EQ(info_.NameOf(DomainId{7}), "");
  directory_.name = "late";
  directory_.vcpus = 2;
  EXPECT_THAT(NewChanges(monitor), IsEmpty());
  EXPECT_EQ(info_.NameOf(DomainId{7}), "late");
  EXPECT_EQ(info_.Domain(DomainId{7})->vcpus, 2U);
  EXPECT_EQ(info_.NameOf(kWeb), "guest");  // as it was
}

TEST_F(DomainMonitorTest, LimitsWaitForName) {
  DomainMonitor monitor = Monitor();
  NewChanges(monitor);
  host_[DomainId{7}] = {};
  directory_.name = "";
  for (int i = 0; i < 500; ++i) NewChanges(monitor);
  EXPECT_LT(directory_.lists, 100);
}

}  // namespace
}  // namespace xenoscope::sampler
