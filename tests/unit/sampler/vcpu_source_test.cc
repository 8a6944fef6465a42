// What a look at a vCPU does, held against guests that are made up.
#include "sampler/vcpu_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "recording/sample_reader.h"

namespace xenoscope::sampler {
namespace {

using recording::Sample;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr VcpuRef kD1V0{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kD2V0{DomainId{2}, VcpuId{0}};

struct Guest {
  VcpuState state{true, false, true};
  VcpuContext context{0x1000, Mode::kUser};
  int state_error = 0;
  int context_error = 0;
};

// Each stop costs 50 cycles, reading the clock 1.
class FakeCalls final : public VcpuCalls {
 public:
  FakeCalls(std::map<VcpuRef, Guest>& guests, uint64_t& tsc) : guests_(guests), tsc_(tsc) {}
  int Domain(DomainId /*domain*/, DomainState& /*state*/) override { return -ENOSYS; }
  int State(VcpuRef vcpu, VcpuState& state) override {
    state = guests_.at(vcpu).state;
    return guests_.at(vcpu).state_error;
  }
  int Context(VcpuRef vcpu, VcpuContext& context) override {
    tsc_ += 50;
    context = guests_.at(vcpu).context;
    return guests_.at(vcpu).context_error;
  }

 private:
  std::map<VcpuRef, Guest>& guests_;
  uint64_t& tsc_;
};

class VcpuSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / "vcpu_source_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  static VcpuRequest Request(uint32_t pcpus = 2) {
    VcpuRequest request;
    request.domains = {{DomainId{1}, "a", recording::DomainType::kPv, recording::Role::kNone, 1},
                       {DomainId{2}, "b", recording::DomainType::kPvh, recording::Role::kNone, 1}};
    request.looks_hz = 100;
    request.seed = 7;
    request.first_event = 3;
    request.clock_hz = 1'000'000'000;
    request.pcpus = pcpus;
    return request;
  }
  std::unique_ptr<VcpuSource> Open(const VcpuRequest& request) {
    auto source = VcpuSource::Open(request, std::make_unique<FakeCalls>(guests_, tsc_),
                                   [this] { return Tsc{++tsc_}; });
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  // Looks `looks` times, and gives the samples that were written.
  std::vector<Sample> Look(VcpuSource& source, int looks) {
    const std::string file = path_ + "/vcpu.samples";
    auto writer = recording::SampleWriter::Create(file);
    EXPECT_TRUE(source.Start().ok());
    for (int i = 0; i < looks; ++i) EXPECT_TRUE(source.Collect(*writer).ok());
    EXPECT_TRUE(source.Stop(*writer).ok());
    EXPECT_TRUE(writer->Flush().ok());
    const auto mapped = MappedFile::Open(file);
    auto reader = recording::SampleReader::Open(mapped->bytes(), 5);
    std::vector<Sample> samples;
    while (const auto sample = reader->Next()) samples.push_back(*sample);
    EXPECT_FALSE(reader->damage().Any());
    std::filesystem::remove(file);
    return samples;
  }

  std::map<VcpuRef, Guest> guests_{{kD1V0, {}}, {kD2V0, {}}};
  uint64_t tsc_ = 1000;
  std::string path_;
};

TEST_F(VcpuSourceTest, ARunningVcpuIsASampleOfTheTimeThatItWasStopped) {
  guests_[kD1V0].context = guests_[kD2V0].context = {0x1234, Mode::kKernel};
  const auto source = Open(Request());
  const std::vector<Sample> samples = Look(*source, 1);
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_EQ(samples[0].address, 0x1234U);
  EXPECT_EQ(samples[0].mode, Mode::kKernel);
  EXPECT_EQ(samples[0].event, 3);  // vcpu-running
  EXPECT_TRUE(samples[0].stopped);
  // Started at 1001; looked from 1002 to 1053.
  EXPECT_EQ(samples[0].when, (TscRange{Tsc{1002}, Tsc{1054}}));
  EXPECT_EQ(source->Sampled(), (TscRange{Tsc{1001}, Tsc{1054}}));
}

TEST_F(VcpuSourceTest, AVcpuThatWaitsForAPcpuIsAnotherEvent) {
  guests_[kD1V0].state = guests_[kD2V0].state = {true, false, false};
  const auto source = Open(Request());
  const std::vector<Sample> samples = Look(*source, 1);
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_EQ(samples[0].event, 4);
  EXPECT_EQ(source->Events()[1].name, "vcpu-preempted");
  EXPECT_TRUE(source->Events()[1].waiting);
}

TEST_F(VcpuSourceTest, ABlockedOrOfflineVcpuIsCountedAndLeftAlone) {
  guests_[kD1V0].state = {true, true, false};
  guests_[kD2V0].state = {false, false, false};
  const auto source = Open(Request());
  EXPECT_THAT(Look(*source, 100), IsEmpty());
  for (const recording::StreamInfo& stream : source->Streams()) {
    EXPECT_EQ(stream.looks->blocked, stream.looks->total);
    EXPECT_GT(stream.looks->total, 20U);  // of 100, by chance
    EXPECT_EQ(stream.looks->stopped_cycles, 0U);
  }
}

TEST_F(VcpuSourceTest, WhatTheStopsCostIsAddedUpForEachVcpu) {
  guests_[kD2V0].state = {true, true, false};
  const auto source = Open(Request());
  const std::vector<Sample> samples = Look(*source, 50);
  const recording::StreamInfo stream = source->Streams()[0];
  EXPECT_EQ(stream.looks->running, samples.size());
  EXPECT_EQ(stream.looks->stopped_cycles, 51 * samples.size());
  EXPECT_EQ(stream.looks->longest_stop, 51U);
  EXPECT_EQ(stream.kept, samples.size());
  EXPECT_TRUE(stream.complete);
  EXPECT_TRUE(stream.Balanced());
}

TEST_F(VcpuSourceTest, ADomainThatDiesIsNotLookedAtAgain) {
  guests_[kD1V0].state_error = -ESRCH;
  guests_[kD2V0].context_error = -ESRCH;
  const auto source = Open(Request());
  EXPECT_THAT(Look(*source, 100), IsEmpty());
  for (const recording::StreamInfo& stream : source->Streams()) {
    EXPECT_EQ(stream.looks->total, 1U);
    EXPECT_EQ(stream.looks->failed, 1U);
    EXPECT_TRUE(stream.looks->gone);
  }
}

TEST_F(VcpuSourceTest, ARefusalIsCountedAndTriedAgain) {
  guests_[kD1V0].context_error = guests_[kD2V0].context_error = -EINVAL;
  const auto source = Open(Request());
  EXPECT_THAT(Look(*source, 10), IsEmpty());
  EXPECT_EQ(source->Streams()[0].looks->failed + source->Streams()[1].looks->failed, 10U);
  EXPECT_FALSE(source->Streams()[0].looks->gone);
}

TEST_F(VcpuSourceTest, TheSameSeedLooksAtTheSameVcpus) {
  std::vector<VcpuRef> first;
  for (const Sample& sample : Look(*Open(Request()), 20)) first.push_back(sample.vcpu);
  std::vector<VcpuRef> again;
  for (const Sample& sample : Look(*Open(Request()), 20)) again.push_back(sample.vcpu);
  EXPECT_EQ(first, again);
  VcpuRequest other = Request();
  other.seed = 8;
  std::vector<VcpuRef> different;
  for (const Sample& sample : Look(*Open(other), 20)) different.push_back(sample.vcpu);
  EXPECT_NE(first, different);
}

TEST_F(VcpuSourceTest, SaysWhatItIs) {
  const auto source = Open(Request());
  EXPECT_EQ(source->Info().name, "vcpu");
  EXPECT_EQ(source->Info().seed, 7U);
  EXPECT_EQ(source->Info().drain_interval_ns, 10'000'000U);
  EXPECT_EQ(source->Events()[0].clocked_by, "vcpu:100");
  EXPECT_EQ(source->Events()[0].period, 10'000'000U);
  EXPECT_EQ(source->RoleOf(DomainId{2}), recording::Role::kPassive);
  EXPECT_EQ(source->RoleOf(kDom0), recording::Role::kNone);
  EXPECT_THAT(source->Notes(), IsEmpty());
  EXPECT_THAT(Open(Request(/*pcpus=*/1))->Notes(), ElementsAre(HasSubstr("one pCPU")));
}

TEST_F(VcpuSourceTest, InTheEndThePeriodIsThatOfTheLooksThereWere) {
  const auto source = Open(Request());
  Look(*source, 50);  // from look to look 52 cycles, of one vCPU twice as many
  EXPECT_EQ(source->Sampled().Length(), 50U * 52 + 1);
  EXPECT_EQ(source->Events()[0].period, 104U);
  EXPECT_EQ(source->Events()[1].period, 104U);
}

TEST_F(VcpuSourceTest, NobodyToLookAtIsAnError) {
  VcpuRequest request = Request();
  request.domains.clear();
  const auto source = VcpuSource::Open(request, std::make_unique<FakeCalls>(guests_, tsc_),
                                       [this] { return Tsc{++tsc_}; });
  EXPECT_TRUE(absl::IsNotFound(source.status()));
}

}  // namespace
}  // namespace xenoscope::sampler
