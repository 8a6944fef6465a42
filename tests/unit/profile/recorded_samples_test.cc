// The samples of a recording, as placing takes them.
#include "profile/recorded_samples.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake_recording.h"
#include "profile/samples_within.h"

namespace xenoscope::profile {
namespace {

using ::testing::ElementsAre;

std::vector<Address> AddressesOf(correlate::SampleSource& samples) {
  std::vector<Address> addresses;
  while (const recording::Sample* sample = samples.Next()) addresses.push_back(sample->address);
  return addresses;
}

TEST(RecordedSamplesTest, HaveOneEvent) {
  FakeRecording made;
  made.info.events = {EventOf("cycles"), EventOf("faults")};
  made.Sample(100, 110, 0x10);
  made.Sample(200, 210, 0x20, /*event=*/1);
  made.Sample(300, 310, 0x30);
  const auto recording = made.Open();
  auto samples = RecordedSamples::Open(recording, {.events = {0}}, nullptr);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(AddressesOf(*samples), ElementsAre(0x10, 0x30));
  EXPECT_EQ(samples->Damaged(), 0U);
}

TEST(RecordedSamplesTest, StartBehindSkippedBytes) {
  FakeRecording made;
  made.Sample(100, 110, 0x10);
  const auto first = made.Open();
  const auto bytes = std::filesystem::file_size(first.path() + "/samples/perf.samples");
  made.Sample(200, 210, 0x20);
  const auto recording = made.Open();
  auto samples =
      RecordedSamples::Open(recording, {.events = {0}, .skipped_bytes = {bytes}}, nullptr);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(AddressesOf(*samples), ElementsAre(0x20));
}

TEST(RecordedSamplesTest, HaveTheMapsOfTheirTime) {
  FakeRecording made;
  made.Exec(50, 7, "sh");
  made.Sample(100, 110, 0x10, 0, /*pid=*/7);
  made.Exec(150, 7, "ls");
  made.Sample(200, 210, 0x20, 0, /*pid=*/7);
  const auto recording = made.Open();
  const auto processes = RecordedProcesses::Read(recording);
  ASSERT_TRUE(processes.ok()) << processes.status();
  auto samples = RecordedSamples::Open(recording, {.events = {0}}, &*processes);
  ASSERT_TRUE(samples.ok()) << samples.status();
  std::vector<std::string> names;
  while (const recording::Sample* sample = samples->Next()) {
    names.push_back(processes->NameOf(sample->space));
  }
  EXPECT_THAT(names, ElementsAre("sh (7)", "ls (7)"));
}

// Linux takes Xen's code for its own, and samples of other domains are in chunks of their own.
TEST(RecordedSamplesTest, SortsSamplesOfXensVpmu) {
  constexpr Address kXen = 0xffff'82d0'4020'0000;
  FakeRecording made;
  made.info.sources[0].cpu_type = "vpmu:all";
  made.SampleOf(kDom0, Mode::kUser, 100, 110, kXen, 0, /*pid=*/7);
  made.SampleOf(kDom0, Mode::kKernel, 300, 310, 0x30, 0, /*pid=*/7);
  made.SampleOf(kDomXen, Mode::kUser, 50, 60, 0x10, 0, /*pid=*/0);
  made.SampleOf(kDomXen, Mode::kXen, 200, 210, kXen, 0, /*pid=*/0);
  const auto recording = made.Open();
  auto samples = RecordedSamples::Open(recording, {.events = {0}}, nullptr);
  ASSERT_TRUE(samples.ok()) << samples.status();
  std::vector<std::string> found;
  while (const recording::Sample* sample = samples->Next()) {
    found.push_back(fmt::format("{} {} {} {}", sample->when.begin.value,
                                ToString(sample->vcpu.domain), ToString(sample->mode),
                                sample->pcpu.has_value()));
  }
  EXPECT_THAT(found, ElementsAre("50 xen user true", "100 xen xen true", "200 xen xen true",
                                 "300 d0 kernel false"));
  EXPECT_EQ(samples->Damaged(), 0U);
}

TEST(SamplesWithinTest, CountsSamplesNotEntirelyInRange) {
  FakeRecording made;
  made.Sample(100, 110, 0x10);
  made.Sample(195, 205, 0x20);
  made.Sample(200, 300, 0x30);
  made.Sample(299, 301, 0x40);
  const auto recording = made.Open();
  auto all = RecordedSamples::Open(recording, {.events = {0}}, nullptr);
  ASSERT_TRUE(all.ok()) << all.status();
  SamplesWithin within(*all, {Tsc{200}, Tsc{300}});
  EXPECT_THAT(AddressesOf(within), ElementsAre(0x30));
  EXPECT_EQ(within.outside(), 3U);
}

}  // namespace
}  // namespace xenoscope::profile
