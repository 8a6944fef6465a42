#include "sampler/xen/vpmu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The vCPUs of dom0 have these affinities.
class FakeVcpuCalls final : public VcpuCalls {
 public:
  explicit FakeVcpuCalls(std::vector<std::vector<uint32_t>> affinities)
      : affinities_(std::move(affinities)) {}
  int Domain(DomainId /*domain*/, DomainState& /*state*/) override { return -ENOSYS; }
  int State(VcpuRef /*vcpu*/, VcpuState& /*state*/) override { return -ENOSYS; }
  int Context(VcpuRef /*vcpu*/, VcpuContext& /*context*/) override { return -ENOSYS; }
  int Affinity(VcpuRef vcpu, std::vector<uint32_t>& pcpus) override {
    if (vcpu.domain != kDom0 || vcpu.vcpu.value >= affinities_.size()) return -EINVAL;
    pcpus = affinities_[vcpu.vcpu.value];
    return 0;
  }

 private:
  std::vector<std::vector<uint32_t>> affinities_;
};

TEST(Vpmu, VcpusArePinnedIfEachHasThePcpuOfItsNumber) {
  const struct {
    std::vector<std::vector<uint32_t>> affinities;
    std::optional<bool> pinned;
  } kCases[] = {
      {{{0}, {1}}, true},
      {{{0, 1}, {0, 1}}, false},
      {{{1}, {0}}, false},
      {{{0}}, std::nullopt},  // Xen knows no vCPU 1
  };
  for (const auto& [affinities, pinned] : kCases) {
    FakeVcpuCalls calls(affinities);
    EXPECT_EQ(AreDom0VcpusPinned(calls, 2), pinned) << testing::PrintToString(affinities);
  }
}

TEST(Vpmu, ProblemsSayWhatToDo) {
  EXPECT_THAT(VpmuProblems({.mode = "off", .pcpus = 4, .vcpus = 2, .watchdog = true}), IsEmpty());
  EXPECT_THAT(VpmuProblems({.mode = "all", .pcpus = 4, .vcpus = 4, .pinned = true}), IsEmpty());
  EXPECT_THAT(VpmuProblems({.mode = "all", .pcpus = 4, .vcpus = 4}), IsEmpty());  // not known
  EXPECT_THAT(VpmuProblems({.mode = "self", .pcpus = 4, .vcpus = 2, .watchdog = true}),
              ElementsAre(HasSubstr("sysctl kernel.nmi_watchdog=0")));
  EXPECT_THAT(VpmuProblems({.mode = "all", .pcpus = 4, .vcpus = 2, .pinned = false}),
              ElementsAre(HasSubstr("boot Xen with dom0_max_vcpus=4 dom0_vcpus_pin")));
  EXPECT_THAT(VpmuProblems({.mode = "all", .pcpus = 4, .vcpus = 4, .pinned = false}),
              ElementsAre(HasSubstr("xl vcpu-pin 0 N N")));
}

}  // namespace
}  // namespace xenoscope::sampler
