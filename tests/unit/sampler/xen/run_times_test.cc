#include "sampler/xen/run_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Domain 1 has the vCPUs 0 and 2; there is no domain 2.
class FakeRunTimeCalls final : public VcpuCalls {
 public:
  int Domain(DomainId domain, DomainState& state) override {
    state.max_vcpus = 3;
    return domain == DomainId{1} ? 0 : -ESRCH;
  }
  int State(VcpuRef vcpu, VcpuState& state) override {
    if (vcpu.vcpu == VcpuId{1}) return -ESRCH;
    state.ran_ns = 100 + vcpu.vcpu.value;
    return error;
  }
  int Context(VcpuRef /*vcpu*/, VcpuContext& /*context*/) override { return -ENOSYS; }
  int Affinity(VcpuRef /*vcpu*/, std::vector<uint32_t>& /*pcpus*/) override { return -ENOSYS; }
  int error = 0;
};

std::vector<recording::DomainInfo> TimedDomains() {
  std::vector<recording::DomainInfo> domains(2);
  domains[0].id = DomainId{1};
  domains[1].id = DomainId{2};
  return domains;
}

TEST(ReadRunTimesTest, ReadsVcpusThatExist) {
  FakeRunTimeCalls calls;
  const auto times = ReadRunTimes(calls, TimedDomains());
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(*times, ElementsAre(Pair(VcpuRef{DomainId{1}, VcpuId{0}}, 100),
                                  Pair(VcpuRef{DomainId{1}, VcpuId{2}}, 102)));
}

TEST(ReadRunTimesTest, PassesErrorsOn) {
  FakeRunTimeCalls calls;
  calls.error = -EPERM;
  EXPECT_TRUE(absl::IsPermissionDenied(ReadRunTimes(calls, TimedDomains()).status()));
}

}  // namespace
}  // namespace xenoscope::sampler
