#include "correlate/nmi_matching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"

namespace xenoscope::correlate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using trace::kVmexitCpuid;
using trace::kVmexitHlt;
using trace::kVmexitIntr;
using trace::kVmexitIoio;

// An NMI exit at `rip` whose guest was entered after an exit for `reason` at `previous`.
ExitMark Nmi(Address rip, uint32_t reason, Address previous) {
  ExitMark mark;
  mark.reason = kSvmExitNmi;
  mark.nmi = true;
  mark.rip = rip;
  mark.has_previous = true;
  mark.previous_reason = reason;
  mark.previous_rip = previous;
  return mark;
}

std::vector<std::pair<size_t, size_t>> Match(const std::vector<Address>& samples,
                                             const std::vector<ExitMark>& exits,
                                             LoggedRip rule = LoggedRip::kOfLastEntry) {
  std::vector<GuestSample> guest;
  guest.reserve(samples.size());
  for (const Address address : samples) guest.push_back({address, Mode::kUser});
  std::vector<std::pair<size_t, size_t>> pairs;
  for (const NmiMatch& matches : MatchNmiExits(guest, exits, rule)) {
    pairs.emplace_back(matches.sample, matches.exit);
  }
  return pairs;
}

TEST(MayEnterAt, AcceptsEmulatedInstructionLengths) {
  EXPECT_TRUE(MayEnterAt(kVmexitCpuid, 0x1000, 0x1002));
  EXPECT_FALSE(MayEnterAt(kVmexitCpuid, 0x1000, 0x1003));
  EXPECT_TRUE(MayEnterAt(kVmexitHlt, 0x1000, 0x1001));
  EXPECT_FALSE(MayEnterAt(kVmexitHlt, 0x1000, 0x1002));
  EXPECT_TRUE(MayEnterAt(kVmexitIntr, 0x1000, 0x1000));
  EXPECT_FALSE(MayEnterAt(kVmexitIntr, 0x1000, 0x1002));
  EXPECT_TRUE(MayEnterAt(kVmexitIoio, 0x1000, 0x1001));
  EXPECT_TRUE(MayEnterAt(kVmexitIoio, 0x1000, 0x1002));
  EXPECT_FALSE(MayEnterAt(kVmexitIoio, 0x1000, 0x1010));
  EXPECT_FALSE(MayEnterAt(kVmexitIoio, 0x1000, 0xfff));
}

TEST(MatchQualityOf, OnIntelMatchesExitRip) {
  const ExitMark mark = Nmi(0x5000, kVmexitCpuid, 0x1000);
  EXPECT_EQ(MatchQualityOf(mark, {0x5000, Mode::kUser}, LoggedRip::kOfExit), MatchQuality::kStrong);
  EXPECT_EQ(MatchQualityOf(mark, {0x1002, Mode::kUser}, LoggedRip::kOfExit), MatchQuality::kNone);
}

TEST(MatchQualityOf, NoMatchWithoutPreviousExit) {
  ExitMark mark = Nmi(0x5000, kVmexitCpuid, 0x1000);
  EXPECT_EQ(MatchQualityOf(mark, {0x1002, Mode::kUser}, LoggedRip::kOfLastEntry),
            MatchQuality::kStrong);
  mark.has_previous = false;
  EXPECT_EQ(MatchQualityOf(mark, {0x1002, Mode::kUser}, LoggedRip::kOfLastEntry),
            MatchQuality::kNone);
}

TEST(MatchQualityOf, UserAddressesAreInLowerHalf) {
  const ExitMark kernel = Nmi(0xffffffff81000000, kVmexitIntr, 0x1000);
  EXPECT_EQ(MatchQualityOf(kernel, {0x1000, Mode::kUser}, LoggedRip::kOfLastEntry),
            MatchQuality::kNone);
  EXPECT_EQ(MatchQualityOf(kernel, {0x1000, Mode::kKernel}, LoggedRip::kOfLastEntry),
            MatchQuality::kStrong);
  const ExitMark vsyscall = Nmi(0xffffffffff600400, kVmexitIntr, 0x1000);
  EXPECT_EQ(MatchQualityOf(vsyscall, {0x1000, Mode::kUser}, LoggedRip::kOfLastEntry),
            MatchQuality::kStrong);
}

TEST(MatchNmiExits, KeepsTheOrder) {
  EXPECT_THAT(Match({0x1002, 0x2000, 0x1002},
                    {Nmi(0x1100, kVmexitCpuid, 0x1000), Nmi(0x2200, kVmexitIntr, 0x2000)}),
              ElementsAre(Pair(0, 0), Pair(1, 1)));
}

TEST(MatchNmiExits, DoesNotMatchOtherExits) {
  EXPECT_THAT(Match({0x9000, 0x1002, 0x9000}, {Nmi(0x1100, kVmexitCpuid, 0x1000)}),
              ElementsAre(Pair(1, 0)));
}

TEST(MatchNmiExits, MaximisesMatchesDespiteLostSamples) {
  // The sample of the first exit is gone; the first that agrees with it belongs to the third.
  EXPECT_THAT(
      Match({0x2000, 0x1000}, {Nmi(0x11, kVmexitIntr, 0x1000), Nmi(0x22, kVmexitIntr, 0x2000),
                               Nmi(0x33, kVmexitIntr, 0x1000)}),
      ElementsAre(Pair(0, 1), Pair(1, 2)));
}

TEST(MatchNmiExits, PrefersKernelSamplesAtKernelAddresses) {
  const std::vector<GuestSample> samples = {{0x1002, Mode::kKernel}, {0x1002, Mode::kUser}};
  const std::vector<ExitMark> user = {Nmi(0x1100, kVmexitCpuid, 0x1000)};
  std::vector<NmiMatch> matches = MatchNmiExits(samples, user, LoggedRip::kOfLastEntry);
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(matches[0].sample, 1U);
  const std::vector<ExitMark> kernel = {Nmi(0xffffffff81000000, kVmexitCpuid, 0x1000)};
  matches = MatchNmiExits(samples, kernel, LoggedRip::kOfLastEntry);
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(matches[0].sample, 0U);
}

TEST(MatchNmiExits, EmptyInputsMatchNothing) {
  EXPECT_THAT(Match({}, {Nmi(0x11, kVmexitIntr, 0x1000)}), IsEmpty());
  EXPECT_THAT(Match({0x1000}, {}), IsEmpty());
}

TEST(MatchNmiExits, HandlesBracketOfWholeRecording) {
  constexpr size_t kMany = 3000;
  const std::vector<Address> samples(kMany, 0x1000);
  const std::vector<ExitMark> exits(kMany, Nmi(0x1100, kVmexitIntr, 0x1000));
  EXPECT_EQ(Match(samples, exits).size(), kMany);
}

}  // namespace
}  // namespace xenoscope::correlate
