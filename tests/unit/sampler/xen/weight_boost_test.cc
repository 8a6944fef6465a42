// A raised weight of dom0, and how it is restored, with a simulated scheduler.
#include "sampler/xen/weight_boost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct FakeScheduler {
  WeightScheduler scheduler = WeightScheduler::kCredit2;
  bool has_weights = true;
  uint16_t weight = 256;
  int set_error = 0;
};

class FakeWeightCalls final : public WeightCalls {
 public:
  explicit FakeWeightCalls(FakeScheduler& xen) : xen_(xen) {}
  int Get(WeightScheduler scheduler, DomainId domain, uint16_t& weight) override {
    EXPECT_EQ(domain, kDom0);
    if (!xen_.has_weights || scheduler != xen_.scheduler) return -EINVAL;
    weight = xen_.weight;
    return 0;
  }
  int Set(WeightScheduler scheduler, DomainId domain, uint16_t weight) override {
    EXPECT_EQ(domain, kDom0);
    if (!xen_.has_weights || scheduler != xen_.scheduler) return -EINVAL;
    if (xen_.set_error == 0) xen_.weight = weight;
    return xen_.set_error;
  }

 private:
  FakeScheduler& xen_;
};

class WeightBoostTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove(path_); }
  void TearDown() override { fs::remove(path_); }
  absl::StatusOr<std::unique_ptr<WeightBoost>> Raise() {
    return WeightBoost::Raise(std::make_unique<FakeWeightCalls>(xen_), path_);
  }
  // What the next recorder does.
  std::string RestoreStale() {
    FakeWeightCalls calls(xen_);
    const auto restored = WeightBoost::RestoreStale(calls, path_);
    return restored.ok() ? restored->value_or("") : std::string(Message(restored.status()));
  }
  // Leaves the file as a recorder does that is killed.
  void RaiseAndBeKilled() {
    const auto boost = Raise();
    ASSERT_TRUE(boost.ok()) << boost.status();
    const fs::path kept = path_ + ".kept";
    fs::copy_file(path_, kept);
    const uint16_t raised = xen_.weight;
    ASSERT_TRUE((*boost)->Restore().ok());
    fs::rename(kept, path_);
    xen_.weight = raised;
  }

  FakeScheduler xen_;
  const std::string path_ =
      (fs::temp_directory_path() / ("weight_boost_test." + std::to_string(getpid()))).string();
};

TEST_F(WeightBoostTest, RaisesAndRestores) {
  const auto boost = Raise();
  ASSERT_TRUE(boost.ok()) << boost.status();
  EXPECT_EQ(xen_.weight, 256 * WeightBoost::kFactor);
  EXPECT_EQ((*boost)->before(), 256);
  EXPECT_EQ((*boost)->raised(), xen_.weight);
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_TRUE((*boost)->Restore().ok());
  EXPECT_EQ(xen_.weight, 256);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(WeightBoostTest, DestructorRestores) {
  xen_.scheduler = WeightScheduler::kCredit;
  {
    const auto boost = Raise();
    ASSERT_TRUE(boost.ok()) << boost.status();
    EXPECT_EQ(xen_.weight, 2048);
  }
  EXPECT_EQ(xen_.weight, 256);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(WeightBoostTest, StaysBelowTheLargestWeight) {
  xen_.weight = 40000;
  const auto boost = Raise();
  ASSERT_TRUE(boost.ok()) << boost.status();
  EXPECT_EQ(xen_.weight, 65535);
}

TEST_F(WeightBoostTest, NextRecorderRestoresAfterAKill) {
  RaiseAndBeKilled();
  EXPECT_THAT(RestoreStale(), HasSubstr("restored dom0's weight of 256"));
  EXPECT_EQ(xen_.weight, 256);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_EQ(RestoreStale(), "");
}

TEST_F(WeightBoostTest, LeavesAWeightThatSomebodyElseSet) {
  RaiseAndBeKilled();
  xen_.weight = 512;
  EXPECT_EQ(RestoreStale(), "");
  EXPECT_EQ(xen_.weight, 512);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(WeightBoostTest, KeepsTheFileWhileItCannotRestore) {
  RaiseAndBeKilled();
  xen_.set_error = -EPERM;
  EXPECT_THAT(RestoreStale(), HasSubstr("xl sched-credit2 -d 0 -w 256"));
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(WeightBoostTest, FileThatIsNoStateIsSaid) {
  for (const char* text : {"", "credit2 256", "credit2 0 8", "credit3 256 2048", "credit2 x y",
                           "credit2 256 70000", "credit2 -1 2048"}) {
    std::ofstream(path_) << text;
    EXPECT_THAT(RestoreStale(), HasSubstr("does not say from what")) << text;
    EXPECT_EQ(xen_.weight, 256) << text;
    EXPECT_FALSE(fs::exists(path_)) << text;
  }
}

TEST_F(WeightBoostTest, SchedulerWithoutWeights) {
  xen_.has_weights = false;
  EXPECT_THAT(std::string(Message(Raise().status())), HasSubstr("record without --boost"));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(WeightBoostTest, RefusedRaiseLeavesNoFile) {
  xen_.set_error = -EPERM;
  EXPECT_FALSE(Raise().ok());
  EXPECT_EQ(xen_.weight, 256);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(WeightBoostTest, NothingRaisedWithoutAFile) {
  EXPECT_FALSE(
      WeightBoost::Raise(std::make_unique<FakeWeightCalls>(xen_), "/proc/none/weight").ok());
  EXPECT_EQ(xen_.weight, 256);
}

}  // namespace
}  // namespace xenoscope::sampler
