// How a profile's columns and the trace's dialect choose how samples are placed and refined.
#include "profile/pipeline_options.h"

#include <gtest/gtest.h>

namespace xenoscope::profile {
namespace {

using correlate::Dimension;
using correlate::LoggedRip;

trace::Dialect DialectOf(trace::Vendor vendor, uint32_t minor) {
  trace::Dialect dialect;
  dialect.vendor = vendor;
  dialect.SetVersion(trace::MakeVersion(4, minor), trace::DialectSource::kGiven);
  return dialect;
}

TEST(LoggedRipTest, IsStaleOnAmdFrom411On) {
  EXPECT_EQ(LoggedRipOf(DialectOf(trace::Vendor::kSvm, 10)), LoggedRip::kOfExit);
  EXPECT_EQ(LoggedRipOf(DialectOf(trace::Vendor::kSvm, 11)), LoggedRip::kOfLastEntry);
  EXPECT_EQ(LoggedRipOf(DialectOf(trace::Vendor::kSvm, 17)), LoggedRip::kOfLastEntry);
}

TEST(LoggedRipTest, IsOfExitOnIntel) {
  EXPECT_EQ(LoggedRipOf(DialectOf(trace::Vendor::kVmx, 17)), LoggedRip::kOfExit);
}

TEST(LoggedRipTest, IsStaleOnAmdOfUnknownVersion) {
  trace::Dialect dialect;
  dialect.vendor = trace::Vendor::kSvm;
  EXPECT_EQ(LoggedRipOf(dialect), LoggedRip::kOfLastEntry);
}

TEST(PlacingOptionsTest, FollowAllColumns) {
  const correlate::PlacingOptions placing =
      PlacingOptionsFor(DialectOf(trace::Vendor::kVmx, 17), {Tsc{5}, Tsc{9}}, 7,
                        {{Dimension::kDomain, Dimension::kWaiting}, {Dimension::kSubreason}});
  EXPECT_TRUE(placing.by_waiting);
  EXPECT_TRUE(placing.by_subreason);
  EXPECT_FALSE(placing.by_wakeup);
  EXPECT_EQ(placing.vendor, trace::Vendor::kVmx);
  EXPECT_EQ(placing.sampled, (TscRange{Tsc{5}, Tsc{9}}));
  EXPECT_EQ(placing.longest_bracket, 7U);
}

TEST(RefinementOptionsTest, DistinguishWhatRowsDistinguish) {
  const auto plain = RefinementOptionsFor({Dimension::kDomain, Dimension::kFunction});
  EXPECT_FALSE(plain.by_address || plain.by_process || plain.by_pcpu || plain.by_placing ||
               plain.each_sample);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kLine}).by_address);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kAddress}).by_address);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kProcess}).by_process);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kBehalf}).by_process);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kPage}).by_address);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kPcpu}).by_pcpu);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kStack}).each_sample);
}

TEST(RefinementOptionsTest, DistinguishPlacingOnlyWithExits) {
  EXPECT_FALSE(RefinementOptionsFor({Dimension::kPlacing}).by_placing);
  EXPECT_TRUE(RefinementOptionsFor({Dimension::kPlacing, Dimension::kExit}).by_placing);
}

}  // namespace
}  // namespace xenoscope::profile
